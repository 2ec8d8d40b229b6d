"""Targets that managed proxies may reach although they are refused by default (`--allow-targets`).

Imports nothing heavy: proxy processes carry it too.
"""

import ipaddress
import re
from typing import Final, NamedTuple

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_SHAPE: Final = "write HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000, or a CIDR, as 10.0.0.0/8"


class AllowedTarget(NamedTuple):
    """A network with all its ports, or one port of an address or a name."""

    network: Network | None
    name: str
    """Lower case; empty when there is a network. It counts as it was asked for."""
    port: int | None

    def __str__(self) -> str:
        if self.network is None:
            return f"{self.name}:{self.port}"
        if self.port is None:
            return str(self.network)
        host = self.network.network_address
        return f"[{host}]:{self.port}" if host.version == 6 else f"{host}:{self.port}"

    def admits(self, host: str, address: Address, port: int) -> bool:
        """Tell whether it names this: `host` is what was asked for, `address` what it came to."""
        if self.port not in (None, port):
            return False
        if self.network is None:
            return host.lower() == self.name
        return address in self.network


def parse_allowed_target(text: str) -> AllowedTarget:
    """Read `HOST:PORT`, `[IPv6]:PORT` or a CIDR; ValueError says what is wrong."""
    if "/" in text:
        try:
            return AllowedTarget(ipaddress.ip_network(text), "", None)
        except ValueError as err:
            raise ValueError(f"{text!r} is no network: {err}") from None
    host, _, digits = text.rpartition(":")
    is_port = digits.isascii() and digits.isdigit() and 1 <= int(digits[:6]) <= 65535
    is_bare_v6 = ":" in host and not host.startswith("[")
    if not host or not is_port or is_bare_v6:
        raise ValueError(f"{text!r} is no target: {_SHAPE}")
    port = int(digits)
    try:
        return AllowedTarget(ipaddress.ip_network(host.strip("[]")), "", port)
    except ValueError:
        if not _NAME.fullmatch(host):
            raise ValueError(f"{text!r} is no target: {_SHAPE}") from None
    return AllowedTarget(None, host.lower(), port)
