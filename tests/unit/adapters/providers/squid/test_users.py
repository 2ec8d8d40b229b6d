import re

import pytest

from proxy_operator.adapters.providers.squid.users import users_file
from proxy_operator.domain.secret import Credentials

SALT = "abcdefghijklmnop"


def test_the_file_holds_the_user_and_a_salted_hash() -> None:
    text = users_file(Credentials("crawler", "s3cret"), SALT)
    assert re.fullmatch(r"crawler:\$6\$abcdefghijklmnop\$[./0-9A-Za-z]{86}\n", text)


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials("#crawler", "s3cret"),
        Credentials(" crawler", "s3cret"),
        Credentials("c" * 256, "s3cret"),
        Credentials("crawler", "s3cret" * 100),
        Credentials("crawler", "§" * 256),
    ],
)
def test_what_squid_would_never_let_in_is_refused(credentials: Credentials) -> None:
    with pytest.raises(ValueError, match="squid") as caught:
        users_file(credentials, SALT)
    assert credentials.password not in str(caught.value)
    assert credentials.username not in str(caught.value)
