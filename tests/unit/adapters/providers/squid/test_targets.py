import ipaddress
import itertools

import pytest

from proxy_operator.adapters.providers.squid.targets import (
    AllowedTarget,
    denied_networks,
    parse_allowed_target,
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("Example.com", AllowedTarget(None, "example.com", None)),
        ("example.com:8080", AllowedTarget(None, "example.com", 8080)),
        ("10.0.0.1", AllowedTarget(ipaddress.ip_network("10.0.0.1/32"), "", None)),
        ("10.0.0.1:80", AllowedTarget(ipaddress.ip_network("10.0.0.1/32"), "", 80)),
        ("10.0.0.0/8", AllowedTarget(ipaddress.ip_network("10.0.0.0/8"), "", None)),
        ("10.0.0.0/8:443", AllowedTarget(ipaddress.ip_network("10.0.0.0/8"), "", 443)),
        ("fd00::/8", AllowedTarget(ipaddress.ip_network("fd00::/8"), "", None)),
        ("[fd00::/8]:443", AllowedTarget(ipaddress.ip_network("fd00::/8"), "", 443)),
        ("[::1]:80", AllowedTarget(ipaddress.ip_network("::1/128"), "", 80)),
        ("[::1]", AllowedTarget(ipaddress.ip_network("::1/128"), "", None)),
    ],
)
def test_forms_of_a_target(text: str, target: AllowedTarget) -> None:
    assert parse_allowed_target(text) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":80",
        "a b",
        "a\nhttp_access allow all",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.300",
        "host:0",
        "host:65536",
        "host:http",
        "host:²",
        "host:",
        "[::1]:",
        "[::1",
        "[]:80",
        "http://host",
        "-n",
        "*.example.com",
        "fe80::1%eth0",
    ],
)
def test_what_is_no_target_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not|is neither"):
        parse_allowed_target(text)


def bounds(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> tuple[int, int]:
    """First and last address, IPv4 mapped into IPv6 as squid does."""
    offset = 0xFFFF << 32 if network.version == 4 else 0
    return offset + int(network[0]), offset + int(network[-1])


def test_denied_networks_do_not_overlap() -> None:
    networks = denied_networks()
    for one, other in itertools.permutations(networks, 2):
        assert set(bounds(one)).isdisjoint(bounds(other))
        assert not bounds(one)[0] <= bounds(other)[0] <= bounds(one)[1]


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "192.0.2.1", "2600::1"])
def test_the_internet_is_not_denied(address: str) -> None:
    ip = ipaddress.ip_address(address)
    assert not any(ip in network for network in denied_networks())


def test_public_addresses_behind_nat64_are_not_denied() -> None:
    ip = ipaddress.ip_address("64:ff9b::101:101")
    assert not any(ip in network for network in denied_networks())
