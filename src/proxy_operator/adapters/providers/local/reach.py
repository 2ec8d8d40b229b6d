"""What a local proxy connects to: one rule, and the operator's part of it.

A visitor must keep this rule: what is asked about is the address that will be connected to, never
a name. Proxy processes carry this, so it imports nothing heavy.
"""

import ipaddress
from pathlib import Path
from typing import Any, Final, NamedTuple

from proxy_operator.adapters.providers.local import layout
from proxy_operator.provisioning.targets import Address, AllowedTarget, parse_allowed_target

_METADATA: Final = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "fd00:ec2::254",  # Amazon EC2
        "fd20:ce::254",  # Google Compute Engine
        "168.63.129.16",  # Azure
        "100.100.100.200",  # Alibaba Cloud
    )
)
"""Services for the machine itself that are not at a link-local address, as 169.254.169.254 is."""


class Reach(NamedTuple):
    """What the operator says to the proxies of its machine."""

    api_ports: tuple[int, ...] = ()
    """Its discovery API and its metrics."""
    health_port: int | None = None
    """What proxies are probed against by default."""
    allowed: tuple[AllowedTarget, ...] = ()
    health_host: str = "127.0.0.1"
    """By which address of this machine the health port is asked for: name or address."""


class Destination(NamedTuple):
    """An address that a client's target has come to."""

    host: str
    """What the client asked for."""
    address: Address
    port: int
    is_here: bool
    """The address is one of this machine."""


def is_reachable(target: Destination, reach: Reach, *, is_local_proxy: bool) -> bool:
    """Decide whether a client may be connected to this.

    `is_local_proxy`: only this machine can connect to the proxy itself, so its clients could go
    to everything on this machine directly. What other machines use must be no way in.
    """
    if target.is_here and target.port in reach.api_ports:
        return False
    if any(one.admits(target.host, target.address, target.port) for one in reach.allowed):
        return True
    if target.is_here:
        return is_local_proxy or target.port == reach.health_port
    return not (target.address.is_link_local or target.address in _METADATA)


def plain_address(text: str) -> Address:
    """Return the address that really gets the packets: an IPv4 one in IPv6 clothes is IPv4."""
    address = ipaddress.ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def path_for(root: Path) -> Path:
    """Return where the operator's part is kept, for instances below `root`."""
    return root.with_name(f"{root.name}.json")


def write_reach(root: Path, reach: Reach) -> None:
    """Tell every instance below `root`, running ones too. OSError when it cannot be written."""
    content: dict[str, Any] = {
        "apiPorts": reach.api_ports,
        "healthPort": reach.health_port,
        "allowTargets": [str(one) for one in reach.allowed],
        "healthHost": reach.health_host,
    }
    layout.write_atomically(path_for(root), content)


def read_reach(root: Path) -> Reach:
    """Return what the operator wrote last; nothing is allowed when it wrote nothing."""
    content = layout.read_json(path_for(root)) or {}
    return Reach(
        tuple(content.get("apiPorts", ())),
        content.get("healthPort"),
        tuple(map(parse_allowed_target, content.get("allowTargets", ()))),
        content.get("healthHost", "127.0.0.1"),
    )
