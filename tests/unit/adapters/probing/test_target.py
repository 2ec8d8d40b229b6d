import pytest

from proxy_operator.adapters.probing.target import (
    Target,
    connect_request,
    forwarded_request,
    own_request,
    parse_target,
)
from proxy_operator.domain.secret import Credentials


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://a.example", Target(False, "a.example", "a.example:80", "a.example", "/")),
        (
            "https://A.example:8443/x?y=1#z",
            Target(True, "a.example", "a.example:8443", "a.example:8443", "/x?y=1"),
        ),
        ("https://a.example:443/", Target(True, "a.example", "a.example:443", "a.example", "/")),
        (
            "http://[2001:db8::1]:8080/",
            Target(False, "2001:db8::1", "[2001:db8::1]:8080", "[2001:db8::1]:8080", "/"),
        ),
        ("https://[::1]", Target(True, "::1", "[::1]:443", "[::1]", "/")),
        (
            "http://bücher.example/ü?q=ü x",
            Target(
                False,
                "xn--bcher-kva.example",
                "xn--bcher-kva.example:80",
                "xn--bcher-kva.example",
                "/%C3%BC?q=%C3%BC%20x",
            ),
        ),
        ("http://a.example?x", Target(False, "a.example", "a.example:80", "a.example", "/?x")),
        (
            "http://a.example/%20%2F",
            Target(False, "a.example", "a.example:80", "a.example", "/%20%2F"),
        ),
    ],
)
def test_targets(url, target):
    assert parse_target(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/",
        "http:///x",
        "http://a.example:port/",
        "http://a.example:70000/",
        "http://u:p@a.example/",
        "http://a b/",
        "http://a\x7fb/",
        "http://[::1/",
    ],
)
def test_bad_targets(url):
    with pytest.raises(ValueError, match=r"."):
        parse_target(url)


def test_no_url_smuggles_a_line_into_a_request():
    target = parse_target("http://a.example/x\r\nEvil: 1\r\n\r\nGET /?a\r\nb \x0b\x85")
    for request in (
        forwarded_request(target, None),
        own_request(target),
        connect_request(target, None),
    ):
        head, end, rest = request.partition(b"\r\n\r\n")
        assert (end, rest) == (b"\r\n\r\n", b"")
        assert b"\nEvil" not in head
        assert len(head.split(b"\r\n")[0].split(b" ")) == 3


def test_credentials_are_basic_and_utf_8():
    target = parse_target("http://a.example/")
    request = forwarded_request(target, Credentials("u", "€"))
    assert b"Proxy-Authorization: Basic dTrigqw=\r\n" in request
