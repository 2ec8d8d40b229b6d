"""Which Proxy-Authorization values open a proxy."""

import base64

import pytest

from proxy_operator.adapters.providers.local.authorization import auth_codes, is_authorized

PASSWORDS = ["p$x", "p@s:s/#%", "\"q'", "x" * 64, "pässwörd", "пароль", "密码 🔑"]


def header(username: str, password: str, charset: str = "utf-8") -> bytes:
    return b"Basic " + base64.b64encode(f"{username}:{password}".encode(charset))


@pytest.mark.parametrize("password", PASSWORDS)
def test_the_right_password_opens(password: str):
    assert is_authorized(header("crawler", password), auth_codes("crawler", password))


def test_a_client_may_speak_latin_1():
    assert is_authorized(header("ü", "pässwörd", "latin-1"), auth_codes("ü", "pässwörd"))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"Basic",
        b"Basic ",
        b"Basic !!!",
        header("crawler", "wrong"),
        header("crawler", "s3cre"),
        header("crawler", "s3cret "),
        header("Crawler", "s3cret"),
        header("crawler", "s3cret").replace(b"Basic", b"Bearer"),
        header("crawler", "s3cret")[:-1],
    ],
)
def test_anything_else_does_not(value: bytes):
    assert not is_authorized(value, auth_codes("crawler", "s3cret"))


@pytest.mark.parametrize("scheme", [b"basic", b"BASIC", b"Basic  "])
def test_the_scheme_is_read_as_the_rfc_says(scheme: bytes):
    code = base64.b64encode(b"crawler:s3cret")
    assert is_authorized(scheme + b" " + code, auth_codes("crawler", "s3cret"))
