"""What the operator's lists refuse gets no connection, no password and no client."""

from collections.abc import Iterator

import pytest

from tests.asking_proxy import AskingProxy
from tests.e2e.home import Home, Operator, an_external, credentials
from tests.e2e.processes import until

PAGE = "http://target.example/"
CHECK = {"interval": "1s", "timeout": "500ms"}


@pytest.fixture
def asking() -> Iterator[AskingProxy]:
    proxy = AskingProxy("crawler", "p4ss")
    try:
        yield proxy
    finally:
        proxy.close()


def make(home: Home, name: str, port: int, host: str = "127.0.0.1", url: str = PAGE) -> None:
    home.apply(
        an_external(
            name,
            port,
            url,
            endpoint={"host": host, "port": port},
            healthCheck={**CHECK, "url": url},
            credentialsSecretRef={"name": "s"},
        )
    )


def until_reasons(home: Home, reasons: dict[str, str]) -> None:
    until(lambda: {name: home.health_reason(name) for name in reasons} == reasons, f"{reasons}")


def leased(operator: Operator, tries: int) -> set[str]:
    found = (operator.lease() for _ in range(tries))
    return {one["proxy"]["name"] for one in found if one is not None}


def test_only_endpoints_on_the_list_are_probed_and_leased(home: Home, asking: AskingProxy):
    home.operator("--allow-endpoints", "*.proxies.example", "--allow-endpoints", "127.0.0.2")
    home.apply(credentials("s", "p4ss"))
    make(home, "address", asking.port)
    make(home, "name", asking.port, "localhost")
    until_reasons(home, {"address": "NotAllowed", "name": "NotAllowed"})
    until(lambda: home.events("name") == ["ProbeDenied"], "it is said")
    make(home, "allowed", asking.port, "127.0.0.2")
    until(lambda: home.health_reason("allowed") == "ProbeFailed", "nobody listens there")
    # By now the refused ones had their turn several times.
    assert asking.asked == []
    assert home.events("address") == home.events("name") == ["ProbeDenied"]


def test_a_network_vouches_for_the_address_of_a_name(home: Home, asking: AskingProxy):
    operator = home.operator("--allow-endpoints", "127.0.0.0/8")
    home.apply(credentials("s", "p4ss"))
    make(home, "name", asking.port, "localhost")
    until_reasons(home, {"name": "ProbeSucceeded"})
    assert asking.asked[-1] == asking.wanted
    assert leased(operator, 3) == {"name"}


def test_a_url_that_is_not_on_the_list_is_not_fetched(home: Home, asking: AskingProxy):
    home.operator("--allow-health-urls", "target.example")
    home.apply(credentials("s", "p4ss"))
    make(home, "internal", asking.port, url="http://169.254.169.254/latest")
    until_reasons(home, {"internal": "NotAllowed"})
    assert asking.asked == []
    make(home, "internal", asking.port)
    until_reasons(home, {"internal": "ProbeSucceeded"})


def test_a_list_given_later_counts_from_the_start(home: Home, asking: AskingProxy):
    operator = home.operator()
    home.apply(credentials("s", "p4ss"))
    make(home, "p1", asking.port)
    until_reasons(home, {"p1": "ProbeSucceeded"})
    assert leased(operator, 1) == {"p1"}
    operator.stop()

    before = len(asking.asked)
    operator = home.operator(env={"PROXY_OPERATOR_ALLOW_ENDPOINTS": "a.example,*.b.example"})
    assert leased(operator, 5) == set()
    until_reasons(home, {"p1": "NotAllowed"})
    assert len(asking.asked) == before
    operator.stop()

    operator = home.operator()
    until_reasons(home, {"p1": "ProbeSucceeded"})
    assert leased(operator, 1) == {"p1"}


def test_a_list_that_cannot_be_read_is_refused(home: Home):
    ended = home.cli("run", "--standalone", "--allow-endpoints", "https://a.example")
    assert ended.code == 2, ended
    assert "--allow-endpoints" in ended.err
    assert "https://a.example" in ended.err
