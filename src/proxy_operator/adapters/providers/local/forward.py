"""One request, or one tunnel, from a client to its target: what proxy.py's plugin does, made safe.

Nothing of the client's talk with this proxy may reach the target, and nothing of ours is added.
"""

import socket
from typing import Any, Final

from proxy.core.connection import TcpServerConnection
from proxy.http.exception import (
    HttpProtocolException,
    HttpRequestRejected,
    ProxyConnectionFailed,
)
from proxy.http.proxy import HttpProxyPlugin
from proxy.http.responses import PROXY_TUNNEL_ESTABLISHED_RESPONSE_PKT

from proxy_operator.adapters.providers.local.dialer import TargetRefusedError

MAX_CHUNKS: Final = 8
"""Reads from one side stop while the other side has this many chunks to take."""
READ_BYTES: Final = 64 * 1024

_REFUSAL: Final = b"this proxy connects to no such target; see --allow-targets of its operator\n"

# RFC 9110 section 7.6.1, and what only ever concerns a proxy.
_HOP_BY_HOP: Final = [
    b"connection",
    b"keep-alive",
    b"proxy-authorization",
    b"proxy-connection",
    b"upgrade",
    b"te",
]


class Upstream(TcpServerConnection):
    """A connection to a target."""

    def take(self, connection: socket.socket) -> None:
        """Use this connection: how it was made is the dialer's."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(0)
        self._conn = connection
        self.closed = False


class Forward(HttpProxyPlugin):
    """Carries one request, or one tunnel, to the target."""

    upstream: Upstream | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the library's own
        super().__init__(*args, **kwargs)
        self._body_left = 0
        self._is_raw = False
        """Client bytes are not HTTP to us: a tunnel, or an upgraded connection."""
        self._awaits_switch = False

    def on_request_complete(self) -> bool:
        """Connect and pass the request on. The library's refusals tell the client why not."""
        if self.request.is_https_tunnel:
            self.upstream = self._connect()
            self._is_raw = True
            self.client.queue(PROXY_TUNNEL_ESTABLISHED_RESPONSE_PKT)
            return False
        self._rewrite()
        self.upstream = self._connect()
        packet = self.request.build()
        if self.request.is_chunked_encoded and not self.request.body:
            packet += b"0\r\n\r\n"
        self.upstream.queue(memoryview(packet))
        return False

    def _rewrite(self) -> None:
        """Leave only what is meant for the target, and ask it for one answer per connection.

        A second request on the connection could be for another host, and would carry the
        client's credentials for this proxy.
        """
        request = self.request
        self._awaits_switch = request.is_connection_upgrade
        connection = request.header(b"connection") if request.has_header(b"connection") else b""
        upgrade = request.header(b"upgrade") if self._awaits_switch else b""
        request.del_headers([token.strip() for token in connection.split(b",")])
        request.del_headers(_HOP_BY_HOP)
        if self._awaits_switch:
            request.add_headers([(b"Connection", b"Upgrade"), (b"Upgrade", upgrade)])
        else:
            request.add_header(b"Connection", b"close")
        if request.is_chunked_encoded:
            request.del_header(b"content-length")
        elif request.has_header(b"content-length"):
            self._body_left = int(request.header(b"content-length"))

    def _connect(self) -> Upstream:
        if not self.request.host or not self.request.port:
            raise HttpRequestRejected(400, b"Bad Request")
        host = self.request.host.decode("ascii", "replace").strip("[]")
        upstream = Upstream(host, self.request.port)
        try:
            upstream.take(self.flags.dialer.connect(host, self.request.port))
        except TargetRefusedError as err:
            raise HttpRequestRejected(
                403, b"Forbidden", {b"Content-Type": b"text/plain"}, body=_REFUSAL
            ) from err
        except (OSError, UnicodeError, OverflowError) as err:
            raise ProxyConnectionFailed(host, self.request.port, type(err).__name__) from err
        return upstream

    def on_client_data(self, raw: memoryview) -> None:
        """Pass on what belongs to the request, and nothing after it."""
        if self.upstream is None:
            return
        if self._is_raw:
            self.upstream.queue(raw)
            return
        body, rest = raw[: self._body_left], raw[self._body_left :]
        self._body_left -= len(body)
        if body:
            self.upstream.queue(body)
        if rest and not self.client.has_buffer():
            # The client has its answer, and the target ignores that it should have closed.
            raise HttpProtocolException("a second request on the connection")

    async def get_descriptors(self) -> tuple[list[int], list[int]]:
        """Read from the target only while the client takes what it gets."""
        readable, writable = await super().get_descriptors()
        return ([] if len(self.client.buffer) >= MAX_CHUNKS else readable), writable

    async def read_from_descriptors(self, r: list[int]) -> bool:
        """Move bytes from target to client unparsed; True when the target is done."""
        if self.upstream is None or self.upstream.connection.fileno() not in r:
            return False
        try:
            raw = self.upstream.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            return True
        if raw is None:
            return True
        if self._awaits_switch:
            self._awaits_switch = False
            self._is_raw = raw[:12].tobytes() == b"HTTP/1.1 101"
        self.client.queue(raw)
        return False

    def on_client_connection_close(self) -> None:
        """Close the target's side too."""
        if self.upstream is not None:
            self.upstream.close()
