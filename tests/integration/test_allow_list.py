"""In a cluster too, nothing is sent to an endpoint that the operator's list refuses."""

from collections.abc import Iterator

import pytest

from tests.asking_proxy import AskingProxy
from tests.e2e.processes import until
from tests.integration.secret_site import CREDENTIALS, SecretSite, an_endpoint


@pytest.fixture
def asking() -> Iterator[AskingProxy]:
    proxy = AskingProxy("crawler", "p4ss")
    try:
        yield proxy
    finally:
        proxy.close()


def test_a_refused_endpoint_is_shown_and_said_once(secret_site: SecretSite, asking: AskingProxy):
    home = secret_site
    lists = ("--allow-endpoints", "10.1.0.0/16", "--allow-endpoints", f"127.0.0.1:{asking.port}")
    operator = home.operator(*lists)
    home.make_secret("s", CREDENTIALS, username="crawler", password="p4ss")
    loose, strict = {"host": "localhost", "port": asking.port}, {"host": "127.0.0.2", "port": 1}
    home.make_proxy("allowed", **an_endpoint(asking.port, "s", endpoint=loose))
    home.make_proxy("refused", **an_endpoint(asking.port, "s", endpoint=strict))
    message = "its endpoint 127.0.0.2:1 is not allowed by --allow-endpoints"
    until(lambda: home.condition("refused", "Healthy") == ("False", "NotAllowed", message), "no")
    until(lambda: home.condition("allowed", "Healthy")[0] == "True", "yes")
    until(lambda: operator.lease() is not None, "the allowed one is leased")
    assert operator.lease()["proxy"]["name"] == "allowed"
    until(lambda: len(asking.asked) >= 3, "some probes later")
    told = [one for one in home.events() if one["regarding"]["name"] == "refused"]
    assert [(one["reason"], one["note"]) for one in told] == [("ProbeDenied", message)]
    assert "series" not in told[0]
