from rich.pretty import pretty_repr

from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import CreateRequest
from tests.builders import a_proxy


def test_a_request_never_shows_its_secrets():
    request = CreateRequest(
        name="proxy-a",
        namespace="default",
        proxy_name="p1",
        uid="u",
        request_id="r",
        zone="z",
        spec=a_proxy().spec,
        labels={},
        user_data=b"token: s3cret",
        credentials=Credentials("u", "s3cret"),
    )
    for text in (repr(request), pretty_repr(request)):
        assert "p1" in text
        assert "s3cret" not in text
