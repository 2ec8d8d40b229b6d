"""Which endpoints and probe URLs the operator uses: `--allow-endpoints`, `--allow-health-urls`.

Pure. The rule: whoever may create Proxies decides where Secrets go and what is fetched, so every
way to a proxy asks here before it sends anything, and what cannot be read is refused.
"""

import ipaddress
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    # The options read lists by this module, and --help must not load msgspec.
    from proxy_operator.domain.proxy import Proxy

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAME: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
_SHAPE: Final = (
    "write HOST or HOST:PORT, such as proxy.example:3128 or [::1]:3128,"
    " *.SUFFIX, as *.proxies.example, or a CIDR, as 192.0.2.0/24"
)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class AllowedHost(NamedTuple):
    """A network, a name, or all names below one; all their ports, or one."""

    network: Network | None
    name: str
    """Lower case, without a root dot; empty when there is a network."""
    is_suffix: bool
    """Names below `name` are meant, not itself."""
    port: int | None

    def admits_name(self, name: str, port: int) -> bool:
        """Tell whether this name is allowed as it stands, wherever it leads to."""
        if self.network is not None or self.port not in {None, port}:
            return False
        return name.endswith(f".{self.name}") if self.is_suffix else name == self.name


class AllowList(NamedTuple):
    """What is allowed; an empty list allows everything."""

    endpoints: tuple[AllowedHost, ...] = ()
    """Endpoints of External proxies. Managed ones are where their provider put them."""
    health_urls: tuple[AllowedHost, ...] = ()
    """Hosts of `healthCheck.url`. The operator's own `--health-url` is its own affair."""

    def refusal(self, proxy: "Proxy") -> str | None:
        """Say why nothing may be sent to this proxy; None when something may.

        A name that only an address can vouch for is not refused here: see `networks_of`.
        """
        endpoint, url = proxy.spec.endpoint, proxy.spec.health_check.url
        if endpoint is not None and self.endpoints and self._ways(proxy) == ():
            return refused_endpoint(endpoint.host, endpoint.port)
        if url is not None and self.health_urls and not _admits_url(self.health_urls, url):
            return "the host of its healthCheck.url is not allowed by --allow-health-urls"
        return None

    def networks_of(self, proxy: "Proxy") -> tuple[Network, ...] | None:
        """Return where the addresses of this proxy's endpoint must lie; None is anywhere.

        To be asked of the very address that is connected to: a name may lead elsewhere next time.
        """
        return self._ways(proxy) if self.endpoints else None

    def restricts(self, proxy: "Proxy") -> bool:
        """Tell whether it refuses this proxy, or may do so once its name is looked up."""
        return self.refusal(proxy) is not None or self.networks_of(proxy) is not None

    def _ways(self, proxy: "Proxy") -> tuple[Network, ...] | None:
        endpoint = proxy.spec.endpoint
        return None if endpoint is None else _ways(self.endpoints, endpoint.host, endpoint.port)


def refused_endpoint(host: str, port: int) -> str:
    """Say that an endpoint is refused; not what its name leads to, which may be private."""
    where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"its endpoint {where} is not allowed by --allow-endpoints"


def is_within(networks: tuple[Network, ...], host: str) -> bool:
    """Tell whether a literal address, with or without zone, lies in one of the networks."""
    address = _address(host)
    return address is not None and any(address in one for one in networks)


def parse_allowed_host(text: str) -> AllowedHost:
    """Read `HOST[:PORT]`, `*.SUFFIX[:PORT]` or a CIDR; ValueError says what is wrong."""
    if "://" not in text and "/" in text:
        try:
            return AllowedHost(ipaddress.ip_network(text), "", is_suffix=False, port=None)
        except ValueError as err:
            raise ValueError(f"{text!r} is no network: {err}") from None
    host, port = _split(text)
    address = _address(host)
    if address is not None and "%" not in host:
        return AllowedHost(ipaddress.ip_network(address), "", is_suffix=False, port=port)
    name = _plain(host.removeprefix("*."))
    if not _NAME.fullmatch(name) or name.rpartition(".")[2].isdigit():
        raise ValueError(f"{text!r} is no host: {_SHAPE}")
    return AllowedHost(None, name, is_suffix=host.startswith("*."), port=port)


def _split(text: str) -> tuple[str, int | None]:
    """Return host, without brackets, and port if there is one."""
    if _address(text) is not None:
        return text, None
    host, colon, digits = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, digits = text, "1"
    is_port = digits.isascii() and digits.isdigit() and 1 <= int(digits[:6]) <= 65535
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not is_port or is_bracketed != (":" in host):
        raise ValueError(f"{text!r} is no host: {_SHAPE}")
    return host[1:-1] if is_bracketed else host, int(digits) if host != text else None


@lru_cache(maxsize=16384)
def _ways(allowed: tuple[AllowedHost, ...], host: str, port: int) -> tuple[Network, ...] | None:
    """Return the networks that may vouch for a host; None when none needs to, () when none can."""
    networks = tuple(
        one.network for one in allowed if one.network is not None and one.port in {None, port}
    )
    if _address(host) is not None:
        return networks if is_within(networks, host) else ()
    # Others may read odd characters as the end of the host: `evil.example%2f.proxies.example`.
    name = _plain(host)
    is_name = _NAME.fullmatch(name) is not None
    return None if is_name and any(one.admits_name(name, port) for one in allowed) else networks


@lru_cache(maxsize=4096)
def _admits_url(allowed: tuple[AllowedHost, ...], url: str) -> bool:
    # The proxy looks a target's name up, not the operator: no network can vouch for a name.
    try:
        parts = urlsplit(url)
        host, port = ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        return False
    port = port or _DEFAULT_PORTS.get(parts.scheme)
    if not host or port is None:
        return False
    ways = _ways(allowed, host, port)
    return ways is None or is_within(ways, host)


def ascii_host(host: str) -> str:
    """Return a URL's host as requests carry it. ValueError when it is no valid name."""
    try:
        ascii_only = host.encode("idna").decode() if not host.isascii() else host
    except UnicodeError as err:
        raise ValueError("its host is not a valid name") from err
    if any(not 32 < ord(char) < 127 for char in ascii_only):
        raise ValueError("its host is not a valid name")
    return ascii_only


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    # Connecting to ::ffff:192.0.2.1 reaches 192.0.2.1.
    return getattr(address, "ipv4_mapped", None) or address
