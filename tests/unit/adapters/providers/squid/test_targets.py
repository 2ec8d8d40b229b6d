import ipaddress
import itertools

import pytest

from proxy_operator.adapters.providers.squid.targets import denied_networks


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
