"""The forward proxy inside a local instance: proxy.py's protocol handler, one thread per client.

Only the launcher's process imports this. A client may block its own thread and nobody else's;
every buffer and every wait has a bound.
"""

import logging
import select
import selectors
import socket
import threading
import time
from argparse import Namespace
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from proxy.common.flag import flags as proxy_flags
from proxy.http import HttpProtocolHandler
from proxy.http.connection import HttpClientConnection
from proxy.http.exception import HttpRequestRejected, ProxyAuthenticationFailed
from proxy.http.parser import httpParserStates
from proxy.http.protocols import httpProtocols

from proxy_operator.adapters.providers.local.authorization import auth_codes, is_authorized
from proxy_operator.adapters.providers.local.dialer import Dialer
from proxy_operator.adapters.providers.local.forward import MAX_CHUNKS, READ_BYTES, Forward

MAX_CLIENTS: Final = 1000
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_CHUNKED_BODY_BYTES: Final = 16 * 1024 * 1024
REQUEST_SECONDS: Final = 20.0
"""A client must have sent the head of its request by then."""
IDLE_SECONDS: Final = 600.0
FLUSH_SECONDS: Final = 10.0
LINGER_SECONDS: Final = 1.0
"""How long a refused client may go on sending, so that it reads the refusal and not a reset."""

T = TypeVar("T")


class Engine:
    """Accepts clients on a listening socket until the process ends."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        credentials: tuple[str, str] | None,
        dialer: Dialer,
    ) -> None:
        self._listener = listener
        self._slots = threading.BoundedSemaphore(MAX_CLIENTS)
        self._settings = _settings(credentials, dialer)

    def serve(self) -> None:
        """Accept for ever. At the limit new clients wait in the backlog; none is refused."""
        threading.stack_size(512 * 1024)
        while True:
            self._slots.acquire()
            try:
                client, address = self._listener.accept()
            except OSError:
                # The client left before it was accepted, or descriptors are short for a moment.
                self._slots.release()
                time.sleep(0.05)  # noqa: TID251 - there is no loop in this process
                continue
            try:
                threading.Thread(target=self._serve, args=(client, address), daemon=True).start()
            except RuntimeError:  # the machine gives no more threads
                client.close()
                self._slots.release()

    def _serve(self, client: socket.socket, address: tuple[str, int]) -> None:
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Handler(HttpClientConnection(client, address), flags=self._settings).run()
        except OSError:
            return  # a peer went away
        finally:
            client.close()
            self._slots.release()


def _settings(credentials: tuple[str, str] | None, dialer: Dialer) -> Namespace:
    """Return proxy.py's settings. Its own initialiser is not used: it makes directories."""
    logging.disable(logging.CRITICAL)  # proxy.py logs whole requests, credentials included
    settings = proxy_flags.parse_args([])
    settings.threadless = True  # the handler then owns no selector
    settings.certfile = settings.keyfile = None
    settings.client_recvbuf_size = settings.server_recvbuf_size = READ_BYTES
    settings.plugins = {}
    settings.auth_codes = auth_codes(*credentials) if credentials else ()
    settings.dialer = dialer
    return settings


def _finish(step: Coroutine[Any, Any, T]) -> T:
    """Run one of proxy.py's coroutines, which never wait for anything."""
    try:
        step.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("a step of proxy.py waited")


class Handler(HttpProtocolHandler):
    """One client connection: a head, then one request or one tunnel."""

    plugin: Forward | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the library's own
        super().__init__(*args, **kwargs)
        self._head = b""
        self._has_head = False

    def run(self) -> None:
        """Serve the client until either side is done."""
        try:
            self.initialize()
            while not self.is_inactive() and not self._turn():
                pass
        finally:
            self._drain()
            self.shutdown()

    def is_inactive(self) -> bool:
        """Tell whether the client is too slow to ask, or nothing has moved for long."""
        if not self._has_head:
            return time.time() - self.start_time > REQUEST_SECONDS  # noqa: TID251 - its clock
        return self._connection_inactive_for() > IDLE_SECONDS

    async def get_events(self) -> dict[int, int]:
        """Read from the client only while the target takes what it gets."""
        events: dict[int, int] = await super().get_events()
        upstream = self.plugin.upstream if self.plugin else None
        if upstream is not None and len(upstream.buffer) >= MAX_CHUNKS:
            own = self.work.connection.fileno()
            events[own] = events.get(own, 0) & ~selectors.EVENT_READ
        return events

    def _turn(self) -> bool:
        """Wait for traffic, move it, and tell whether the connection is done."""
        poller = select.poll()
        for fileno, events in _finish(self.get_events()).items():
            mask = select.POLLIN if events & selectors.EVENT_READ else 0
            mask |= select.POLLOUT if events & selectors.EVENT_WRITE else 0
            if mask:
                poller.register(fileno, mask)
        ready = poller.poll(1000)
        if ready:
            self.last_activity = time.time()  # noqa: TID251 - proxy.py measures by it
        readable = [fileno for fileno, mask in ready if mask & ~select.POLLOUT]
        writable = [fileno for fileno, mask in ready if mask & ~select.POLLIN]
        return _finish(self.handle_events(readable, writable))

    def _parse_first_request(self, data: memoryview) -> bool:
        """Take the head whole and ask for credentials before anything else is read.

        Bodies with a length are streamed later; chunked ones are collected here.
        """
        if self._has_head:
            return self._collect(data)
        self._head += data.tobytes()
        head, end, rest = self._head.partition(b"\r\n\r\n")
        if len(head) > MAX_HEAD_BYTES:
            raise HttpRequestRejected(431, b"Request Header Fields Too Large")
        if not end:
            return False
        self._has_head = True
        self._parse(memoryview(head + end))
        self._require_framing()
        self._require_credentials()
        if self.request.is_chunked_encoded:
            return self._collect(memoryview(rest)) if rest else False
        self.request.state = httpParserStates.COMPLETE
        return self._start(rest)

    def _collect(self, data: memoryview) -> bool:
        self._parse(data)
        if self.request.total_size > MAX_CHUNKED_BODY_BYTES:
            raise HttpRequestRejected(413, b"Content Too Large")
        return self._start(b"") if self.request.is_complete else False

    def _parse(self, data: memoryview) -> None:
        try:
            self.request.parse(data)
        except Exception as err:
            # The parser raises whatever its slicing and int() raise.
            raise HttpRequestRejected(400, b"Bad Request") from err

    def _require_framing(self) -> None:
        """Refuse bodies whose end we and the target could see at different places."""
        request = self.request
        has_length = request.has_header(b"content-length")
        if has_length and not request.header(b"content-length").isdigit():
            raise HttpRequestRejected(400, b"Bad Request")
        if request.has_header(b"transfer-encoding") and not request.is_chunked_encoded:
            raise HttpRequestRejected(400, b"Bad Request")

    def _require_credentials(self) -> None:
        codes = self.flags.auth_codes
        if not codes:
            return
        name = b"proxy-authorization"
        given = self.request.header(name) if self.request.has_header(name) else b""
        if not is_authorized(given, codes):
            raise ProxyAuthenticationFailed

    def _start(self, rest: bytes) -> bool:
        request, url = self.request, self.request._url  # noqa: SLF001 - the scheme is nowhere else
        is_plain_https = not request.is_https_tunnel and url is not None and url.scheme == b"https"
        if request.http_handler_protocol != httpProtocols.HTTP_PROXY or is_plain_https:
            raise HttpRequestRejected(400, b"Bad Request")
        self.plugin = Forward(self.uid, self.flags, self.work, request)
        self.plugin.on_request_complete()
        if rest:
            self.plugin.on_client_data(memoryview(rest))
        return False

    def _drain(self) -> None:
        """Give both sides what was read for them, for a bounded time."""
        upstream = self.plugin.upstream if self.plugin else None
        for side in (upstream, self.work):
            if side is None or side.closed:
                continue
            try:
                side.connection.settimeout(FLUSH_SECONDS)
                for chunk in side.buffer:
                    side.connection.sendall(chunk)
            except OSError:
                continue
        if upstream is None:
            self._linger()

    def _linger(self) -> None:
        """Read what a refused client still sends: closing on unread data resets the answer."""
        try:
            self.work.connection.shutdown(socket.SHUT_WR)
            self.work.connection.settimeout(LINGER_SECONDS)
            for _ in range(MAX_CHUNKS):
                if not self.work.connection.recv(READ_BYTES):
                    return
        except OSError:
            return
