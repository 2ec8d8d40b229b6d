"""Reading `--allow-targets`, and what it lets through."""

import ipaddress

import pytest

from proxy_operator.provisioning.targets import parse_allowed_target


@pytest.mark.parametrize(
    ("text", "host", "address", "port", "admits"),
    [
        ("127.0.0.1:9000", "localhost", "127.0.0.1", 9000, True),
        ("127.0.0.1:9000", "localhost", "127.0.0.1", 9001, False),
        ("127.0.0.1:9000", "127.0.0.2", "127.0.0.2", 9000, False),
        ("[::1]:9000", "::1", "::1", 9000, True),
        ("[::1]:9000", "127.0.0.1", "127.0.0.1", 9000, False),
        ("127.0.0.0/8", "x.example", "127.9.9.9", 1, True),
        ("127.0.0.0/8", "x.example", "128.0.0.1", 1, False),
        ("fe80::/10", "x.example", "fe80::1%eth0", 80, True),
        ("Origin.example:80", "origin.EXAMPLE", "127.0.0.1", 80, True),
        ("origin.example:80", "other.example", "127.0.0.1", 80, False),
        ("origin.example:80", "origin.example", "127.0.0.1", 81, False),
    ],
)
def test_what_is_let_through(text: str, host: str, address: str, port: int, admits: bool):
    allowed = parse_allowed_target(text)
    assert allowed.admits(host, ipaddress.ip_address(address), port) is admits
    assert parse_allowed_target(str(allowed)) == allowed


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "host", "host:", "host:0", "host:65536", "host:x", ":80", "::1:80", "a b:80"],
)
def test_what_is_no_target_says_what_is(text: str):
    with pytest.raises(ValueError, match=r"no target: write HOST:PORT"):
        parse_allowed_target(text)


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "host/8", "http://host:80/"])
def test_what_is_no_network_says_why(text: str):
    with pytest.raises(ValueError, match="is no network"):
        parse_allowed_target(text)
