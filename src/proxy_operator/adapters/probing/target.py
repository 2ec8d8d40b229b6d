"""A probe's target, read from its URL, and the requests that ask for it."""

import base64
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from proxy_operator.domain.allow_list import ascii_host
from proxy_operator.domain.secret import Credentials

# RFC 3986: what may stand in a path or a query as it is; anything else is percent-encoded, so
# that no URL can carry a line break into a request.
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_QUERY_SAFE: Final = _PATH_SAFE + "?"


class Target(NamedTuple):
    """What is fetched."""

    is_https: bool
    host: str
    """Name or address, without brackets: what a certificate must be for."""
    authority: str
    """`host:port` with brackets around IPv6: what CONNECT names."""
    host_header: str
    """As `authority`, without the scheme's default port."""
    path: str
    """Path and query."""

    @property
    def port(self) -> int:
        """Where it listens: the end of `authority`."""
        return int(self.authority.rpartition(":")[2])


@lru_cache(maxsize=4096)
def parse_target(url: str) -> Target:
    """Read a target. ValueError says what is wrong with the URL."""
    parts = urlsplit(url)
    port = parts.port  # raises ValueError for what is no port
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("it must start with http:// or https:// and name a host")
    if parts.username is not None:
        raise ValueError("it must not carry credentials")
    is_https = parts.scheme == "https"
    default = 443 if is_https else 80
    host = ascii_host(parts.hostname)
    bracketed = f"[{host}]" if ":" in host else host
    path = quote(parts.path or "/", safe=_PATH_SAFE)
    if parts.query:
        path = f"{path}?{quote(parts.query, safe=_QUERY_SAFE)}"
    return Target(
        is_https=is_https,
        host=host,
        authority=f"{bracketed}:{port or default}",
        host_header=bracketed if port in {None, default} else f"{bracketed}:{port}",
        path=path,
    )


def connect_request(target: Target, credentials: Credentials | None) -> bytes:
    """Ask a proxy for a tunnel to the target (RFC 9110 section 9.3.6)."""
    return (
        f"CONNECT {target.authority} HTTP/1.1\r\nHost: {target.authority}\r\n"
        f"User-Agent: proxy-operator\r\n{_authorization(credentials)}\r\n"
    ).encode()


def own_request(target: Target) -> bytes:
    """Ask the target itself, in a tunnel or without any proxy: it must not see credentials."""
    return _get(target.path, target.host_header, "")


def forwarded_request(target: Target, credentials: Credentials | None) -> bytes:
    """Ask a proxy to fetch the target: absolute form (RFC 9112 section 3.2.2)."""
    url = f"http://{target.host_header}{target.path}"
    return _get(url, target.host_header, _authorization(credentials))


def _get(what: str, host: str, extra: str) -> bytes:
    return (
        f"GET {what} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: proxy-operator\r\n"
        f"Accept: */*\r\n{extra}Connection: close\r\n\r\n"
    ).encode()


def _authorization(credentials: Credentials | None) -> str:
    if credentials is None:
        return ""
    # UTF-8, as RFC 7617 section 2.1 asks for and every common proxy expects.
    pair = f"{credentials.username}:{credentials.password}".encode()
    return f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}\r\n"
