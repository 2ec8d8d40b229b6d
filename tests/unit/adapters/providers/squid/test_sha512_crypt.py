import pytest

from proxy_operator.adapters.providers.squid.sha512_crypt import new_salt, sha512_crypt


@pytest.mark.parametrize(
    ("password", "salt", "hashed"),
    [
        # The first row is from the specification, the others from crypt(3) of libxcrypt.
        (
            b"Hello world!",
            "saltstring",
            "svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
        ),
        (
            b"",
            "a",
            "Z6IPkDduHdwavesVY2NFMpOHkigshxPYdhfLg0D3A7/XFQcso9RV2E8qczyJ2su.dj6RRLaTpvgwN1rZfK0I9.",
        ),
        (
            b"x" * 63,
            "abcdefghijklmnop",
            "E/9FxEJJQpMQN29nbwKcZe/.0op2KmiU2LRen7uBH2Oby84ZH8WsVtt.GIgAYytgK3g8Uzpqq8BsBWebdaIHD0",
        ),
        (
            b"x" * 64,
            "./09AZaz",
            "4fFzCQNv9K8uT6.amPAK9CYt8zhZPZw6YWQitNptQitI3OXX5LwV9LVxEq6gEhPru.NTzVfYj2gezzM/NskS91",
        ),
        (
            b"x" * 65,
            "abcdefghijklmnop",
            "Scd3eB8NWB3tz5S.gVBCwFetPxu6e5MQnW.dvLwfCZhkzAPPbpHC4IGVJkX2rYZkLmMEf09uXDpywDco90eeX/",
        ),
        (
            b"x" * 511,
            "abcdefghijklmnop",
            "PpMiLgr/peTgyQQCImLZx0gBH1fjjsUhwoxKDPNI72EyKFV51na4gH1FsQLo44BtSYK35dhagG4eSlm8xZV8L/",
        ),
        (
            "pässwörd-§-日本".encode(),
            "abcdefghijklmnop",
            "5c1BIOAr.V7asac9dWowoY416SHLVBHiCz2mrCKbgg9uW.NO8UxjU8APB8oW7CWOfL4hFg7glCp/G98xfgun50",
        ),
    ],
)
def test_hashes_are_those_of_crypt(password: bytes, salt: str, hashed: str) -> None:
    assert sha512_crypt(password, salt) == f"$6${salt}${hashed}"


@pytest.mark.parametrize("salt", ["", "a$b", "a:b", "x" * 17, "ä"])
def test_a_salt_that_would_break_the_hash_is_refused(salt: str) -> None:
    with pytest.raises(ValueError, match="salt"):
        sha512_crypt(b"x", salt)


def test_salts_differ() -> None:
    salts = {new_salt() for _ in range(50)}
    assert len(salts) == 50
    assert {len(salt) for salt in salts} == {16}
