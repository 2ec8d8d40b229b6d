import pytest

from proxy_operator.adapters.web.bind import Bind, parse_bind


@pytest.mark.parametrize(
    ("text", "bind", "loopback"),
    [
        (":8090", Bind("", 8090), False),
        ("127.0.0.1:8090", Bind("127.0.0.1", 8090), True),
        ("127.9.9.9:1", Bind("127.9.9.9", 1), True),
        ("[::1]:8090", Bind("::1", 8090), True),
        ("[::]:8090", Bind("::", 8090), False),
        ("0.0.0.0:0", Bind("0.0.0.0", 0), False),
        ("localhost:65535", Bind("localhost", 65535), True),
        ("localhost.example:1", Bind("localhost.example", 1), False),
        ("192.0.2.1:80", Bind("192.0.2.1", 80), False),
    ],
)
def test_an_address_is_read_and_written_back(text, bind, loopback):
    assert parse_bind(text) == bind
    assert str(bind) == text
    assert bind.is_loopback is loopback


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not an address"),
        ("8090", "is not an address"),
        ("127.0.0.1", "is not an address"),
        ("127.0.0.1:", "no port"),
        ("127.0.0.1:http", "no port"),
        (":65536", "no port"),
        (":-1", "no port"),
        (":²", "no port"),
        (":99999999999999999999", "no port"),
        ("::1:8090", "is not an address"),
        ("[::1:8090", "is not an address"),
        ("[nope]:8090", "no IPv6 address"),
        ("http://127.0.0.1:8090", "is not an address"),
        ("a b:1", "is not an address"),
    ],
)
def test_a_wrong_address_says_what_a_right_one_is(text, why):
    with pytest.raises(ValueError, match=why) as caught:
        parse_bind(text)
    assert "127.0.0.1:8090" in str(caught.value)
