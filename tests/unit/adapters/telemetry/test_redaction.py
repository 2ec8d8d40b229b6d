"""No secret survives, and nothing else is lost."""

import pytest

from proxy_operator.adapters.telemetry.redaction import REDACTED, redact, redact_text
from proxy_operator.domain.secret import Credentials

SECRET = "p@s:s/#%"


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "Password",
        "proxy_password",
        "token",
        "discovery_token",
        "authorization",
        "Proxy-Authorization",
        "user_data",
        "userData",
        "user-data",
        "credentials",
        "client_secret",
        "apiKey",
        "private_key",
        "cookie",
    ],
)
def test_a_field_of_a_secret_name_is_redacted_whatever_it_holds(name):
    assert redact({name: SECRET}) == {name: REDACTED}
    assert redact({"deep": [{name: ["x", SECRET]}]}) == {"deep": [{name: REDACTED}]}
    assert redact({name: None}) == {name: None}


@pytest.mark.parametrize("name", ["secret_name", "tokens_used", "passed", "proxy", "key", "path"])
def test_other_fields_stay(name):
    assert redact({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://u:pw@h:3128/x?q=1", f"http://{REDACTED}@h:3128/x?q=1"),
        ("via https://crawler@h and http://u:pw@[2001:db8::1]:1", None),
        ("http://u:p@s@h/", f"http://{REDACTED}@h/"),
        ("see http://h/a@b", "see http://h/a@b"),
        ("Authorization: Bearer pw.pw-pw", f"Authorization: {REDACTED}"),
        ("Proxy-Authorization: Basic dTpwdw==", f"Proxy-Authorization: {REDACTED}"),
        ('{"password": "pw\\"pw", "a": 1}', f'{{"password": {REDACTED}, "a": 1}}'),
        ("password='p w' next", f"password={REDACTED} next"),
        ("?token=pw&x=1", f"?token={REDACTED}&x=1"),
        ("sent Bearer pw.pw to h", f"sent Bearer {REDACTED} to h"),
        ("authorization: digest pw, pw", f"authorization: {REDACTED}"),
        ("{'Authorization': 'Bearer pw'}", f"{{'Authorization': '{REDACTED}'}}"),
        ("basic settings loaded", "basic settings loaded"),
        ("the token file changed", "the token file changed"),
        ("probe of default/p1 failed", "probe of default/p1 failed"),
    ],
)
def test_texts_lose_their_credentials_and_nothing_else(text, expected):
    found = redact_text(text)
    if expected is not None:
        assert found == expected
    assert "pw" not in found


def test_objects_are_shown_as_text_and_bytes_as_their_length():
    assert redact({"x": Credentials("u", "pw")}) == {"x": "Credentials(***)"}
    assert redact({"x": b"pw"}) == {"x": "<2 bytes>"}
    assert redact({"x": ValueError("http://u:pw@h")}) == {"x": f"http://{REDACTED}@h"}
    assert redact({"n": 1, "f": 1.5, "b": True, "t": ("a",)}) == {
        "n": 1,
        "f": 1.5,
        "b": True,
        "t": ["a"],
    }


def test_what_was_passed_is_not_changed():
    fields = {"password": "pw", "list": ["http://u:pw@h"]}
    redact(fields)
    assert fields == {"password": "pw", "list": ["http://u:pw@h"]}
