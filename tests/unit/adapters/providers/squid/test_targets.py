import ipaddress
import itertools

import pytest

from proxy_operator.adapters.providers.squid.targets import denied_networks, uncovered, without
from proxy_operator.provisioning.targets import Network


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


def networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


@pytest.mark.parametrize(
    ("given", "removed", "left"),
    [
        ((), ("::/0",), ()),
        (("10.0.0.0/8", "::/96"), (), ("10.0.0.0/8", "::/96")),
        (("10.0.0.0/8",), ("fd00::/8", "11.0.0.0/8"), ("10.0.0.0/8",)),
        (("10.0.0.0/8", "127.0.0.0/8"), ("10.0.0.0/8",), ("127.0.0.0/8",)),
        (("10.0.0.0/8",), ("0.0.0.0/0",), ()),
        (("10.0.0.0/30",), ("10.0.0.1/32",), ("10.0.0.0/32", "10.0.0.2/31")),
        (("10.0.0.0/31",), ("10.0.0.0/32", "10.0.0.1/32"), ()),
        (("10.0.0.0/8", "10.0.0.1/32"), (), ("10.0.0.0/8",)),
    ],
)
def test_what_is_left_of_networks(
    given: tuple[str, ...], removed: tuple[str, ...], left: tuple[str, ...]
) -> None:
    assert without(networks(*given), networks(*removed)) == networks(*left)


def test_addresses_that_no_network_covers() -> None:
    given = ("127.0.0.1", "::1", "198.51.100.7", "2001:db8::7")
    assert uncovered(given, networks("127.0.0.0/8", "::/96")) == given[2:]
