"""Where to listen: `127.0.0.1:8090`, `:8090` (all addresses), `[::1]:8090`, `localhost:0`."""

import ipaddress
from typing import NamedTuple

_SHAPE = "write HOST:PORT, such as 127.0.0.1:8090, [::1]:8090 or :8090"


class BindError(Exception):
    """The address cannot be listened on: say this sentence and exit."""


class Bind(NamedTuple):
    """An address to listen on; host `""` is every address, port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Only this machine can connect."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_bind(text: str) -> Bind:
    """Read a bind address; ValueError says what is wrong with it and what a right one is."""
    host, colon, port = text.rpartition(":")
    if not colon:
        raise ValueError(f"{text!r} is not an address to listen on: {_SHAPE}")
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535):
        raise ValueError(f"{text!r} has no port from 0 to 65535: {_SHAPE}")
    if host.startswith("[") and host.endswith("]"):
        return Bind(_ipv6(host[1:-1], text), int(port))
    if any(char in host for char in ":[]/@ "):
        raise ValueError(f"{text!r} is not an address to listen on: {_SHAPE}")
    return Bind(host, int(port))


def _ipv6(host: str, text: str) -> str:
    try:
        ipaddress.IPv6Address(host)
    except ValueError as err:
        raise ValueError(f"{text!r} has no IPv6 address in its brackets: {_SHAPE}") from err
    return host
