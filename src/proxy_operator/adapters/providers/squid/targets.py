"""Where no squid of ours connects to, unless the operator allows it.

The one rule: a denied range is denied in every spelling of an address, the IPv4 one embedded in
IPv6 included.
"""

import ipaddress
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network
from typing import Final, TypeVar

from proxy_operator.provisioning.targets import Network

AnyNetwork = TypeVar("AnyNetwork", IPv4Network, IPv6Network)

_DENIED_V4: Final = (
    "0.0.0.0/8",  # this host; Linux connects 0.0.0.0 to loopback
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared address space (RFC 6598), where some clouds keep metadata
    "127.0.0.0/8",
    "168.63.129.16/32",  # a public address that is the host's agent in one cloud
    "169.254.0.0/16",  # link-local, metadata
    "172.16.0.0/12",
    "192.0.0.0/24",  # protocol assignments, metadata of one cloud
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarking, and what overlay networks use as private
    "224.0.0.0/3",  # multicast, reserved, broadcast
)
_DENIED_V6: Final = (
    "::/96",  # unspecified, loopback, IPv4-compatible
    "64:ff9b:1::/48",  # local-use NAT64 (RFC 8215)
    "2001::/32",  # Teredo and 6to4 embed IPv4 addresses
    "2002::/16",
    "fc00::/7",  # unique local, metadata of one cloud
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
)
THIS_HOST: Final = (
    IPv4Network("0.0.0.0/8"),
    IPv4Network("127.0.0.0/8"),
    IPv6Network("::/96"),
)
"""What leads to this machine on every machine."""
DENIED_NAMES: Final = ("metadata.google.internal", "metadata.goog")
"""Names that stand for a metadata service, whatever they resolve to."""


def denied_networks() -> tuple[Network, ...]:
    """Return every network that is denied unless allowed, without overlaps.

    NAT64 (RFC 6052) maps all of IPv4 below 64:ff9b::/96, so the denied part is denied there too,
    and only that: in an IPv6-only network every public IPv4 site has such an address.
    """
    v4 = [IPv4Network(text) for text in _DENIED_V4]
    nat64 = int(ipaddress.IPv6Address("64:ff9b::"))
    mapped = [IPv6Network((nat64 + int(n.network_address), 96 + n.prefixlen)) for n in v4]
    return (*v4, *(IPv6Network(text) for text in _DENIED_V6), *mapped)


def uncovered(addresses: Iterable[str], networks: Iterable[Network]) -> tuple[str, ...]:
    """Return the addresses outside the networks: squid warns about those it was told twice."""
    return tuple(
        text
        for text in addresses
        if not any(ipaddress.ip_address(text) in network for network in networks)
    )


def without(networks: Iterable[Network], removed: Iterable[Network]) -> tuple[Network, ...]:
    """Return what is left of the networks, without overlaps."""
    left = list(networks)
    for one in removed:
        left = [part for network in left for part in _parts_outside(network, one)]
    v4 = (network for network in left if isinstance(network, IPv4Network))
    v6 = (network for network in left if isinstance(network, IPv6Network))
    return (*ipaddress.collapse_addresses(v4), *ipaddress.collapse_addresses(v6))


def _parts_outside(network: Network, removed: Network) -> Iterable[Network]:
    if isinstance(network, IPv4Network) and isinstance(removed, IPv4Network):
        return _exclude(network, removed)
    if isinstance(network, IPv6Network) and isinstance(removed, IPv6Network):
        return _exclude(network, removed)
    return (network,)


def _exclude(network: AnyNetwork, removed: AnyNetwork) -> Iterable[AnyNetwork]:
    if network.subnet_of(removed):
        return ()
    return network.address_exclude(removed) if removed.subnet_of(network) else (network,)
