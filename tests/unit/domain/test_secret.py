import msgspec
import pytest
from rich.pretty import pretty_repr

from proxy_operator.domain.secret import Credentials, Secret, credentials_of
from tests.builders import a_secret


@pytest.mark.parametrize(
    "password", ["p$x", "p@s:s/#%", "\"q'", "x" * 64, "pä€", " lead and trail ", "a b"]
)
def test_any_printable_password(password):
    secret = a_secret(username="né".encode(), password=password.encode())
    assert credentials_of(secret) == Credentials("né", password)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"username": b"u"}, "key password is missing or empty"),
        ({"password": b"p"}, "key username is missing or empty"),
        ({"username": b"", "password": b"p"}, "key username is missing or empty"),
        ({"username": b"u", "password": b"\xff"}, "key password is not UTF-8 text"),
        ({"username": b"u:v", "password": b"p"}, "key username contains a colon"),
        ({"username": b"u", "password": b"p\n"}, "key password contains a control character"),
        ({"username": b"u\x7f", "password": b"p"}, "key username contains a control character"),
        ({"username": b"u\x00", "password": b"p"}, "key username contains a control character"),
    ],
)
def test_what_is_no_credentials(data, message):
    with pytest.raises(ValueError, match=message) as raised:
        credentials_of(a_secret(**data))
    assert str(raised.value) == message


def test_values_are_never_shown():
    secret = a_secret(username=b"crawler", password=b"s3cret")
    for held in (secret, credentials_of(secret), {"in": [secret, credentials_of(secret)]}):
        for text in (repr(held), str(held), f"{held}", pretty_repr(held)):
            assert "s3cret" not in text
            assert "crawler" not in text.replace("crawl.example.com", "")


def test_repr_says_which_secret_it_is():
    assert repr(a_secret("s1", b=b"x", a=b"y")) == "Secret(default/s1, keys=['a', 'b'])"
    assert "default/s1" in pretty_repr(a_secret("s1"))


def test_bytes_travel_as_base64():
    secret = a_secret(k=b"\x00\xff")
    wire = msgspec.json.decode(msgspec.json.encode(secret))
    assert wire["data"] == {"k": "AP8="}
    assert msgspec.convert(wire, Secret) == secret
