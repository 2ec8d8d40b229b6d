"""Byte channels to a peer: plain TCP, or TLS over any other channel.

TLS goes through memory BIOs, not through a transport: the client's Finished and the request after
it leave in one segment, which behind a proxy without TCP_NODELAY saves a delayed-ACK wait of some
40 ms, and the same class carries TLS inside TLS.
"""

import asyncio
import ssl
from typing import Final, Protocol, cast

CHUNK: Final = 16 * 1024


class Channel(Protocol):
    """An ordered stream of bytes in both directions."""

    async def send(self, data: bytes) -> None:
        """Write all of it. OSError, or ssl.SSLError."""

    async def receive(self) -> bytes:
        """Return at least one byte, or none at the end. OSError, or ssl.SSLError."""


class SocketChannel(asyncio.Protocol):
    """A TCP connection, on the loop's own transport: on uvloop half the cost of bare sockets.

    Reads stop while a chunk waits to be taken, so that no peer can fill memory.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._is_ended = False
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) >= CHUNK and self._transport is not None:
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self._is_ended = True
        self._wake()
        return True  # whoever opened the connection closes it

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ended = True
        self._error = exc
        self._wake()

    def close(self) -> None:
        """End the connection; what was sent before still leaves."""
        if self._transport is not None:
            self._transport.close()

    async def send(self, data: bytes) -> None:
        if self._error is not None:
            raise self._error
        if self._transport is not None:
            # Requests are small: they fit the kernel's buffer, there is nothing to wait for.
            self._transport.write(data)

    async def receive(self) -> bytes:
        if not self._buffer and not self._is_ended:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if not self._buffer:
            if self._error is not None:
                raise self._error
            return b""
        data, self._buffer = self._buffer[:CHUNK], self._buffer[CHUNK:]
        if not self._buffer and self._transport is not None:
            self._transport.resume_reading()
        return data

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class TlsChannel:
    """TLS as a client. Call `handshake` first."""

    def __init__(self, inner: Channel, context: ssl.SSLContext, server_name: str) -> None:
        self._inner = inner
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)

    async def handshake(self, early: bytes = b"") -> None:
        """Verify the peer. `early` is what was already received of its side.

        Returns with the client's last flight still unsent; it leaves with the first `send`.
        ssl.SSLError also when the peer hangs up meanwhile.
        """
        if early:
            self._incoming.write(early)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._exchange()
            except ssl.SSLError:
                await self._send_alert()
                raise
            else:
                return

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._inner.send(self._outgoing.read())

    async def receive(self) -> bytes:
        while True:
            try:
                return self._tls.read(CHUNK)
            except ssl.SSLWantReadError:
                await self._exchange()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                # Many servers hang up without a close_notify; framing tells what is missing.
                return b""

    async def _exchange(self) -> None:
        """Send what TLS wants to say and feed it what comes back."""
        if self._outgoing.pending:
            await self._inner.send(self._outgoing.read())
        data = await self._inner.receive()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def _send_alert(self) -> None:
        """Tell the peer why, so that its log says more than `reset by peer`."""
        if self._outgoing.pending:
            try:
                await self._inner.send(self._outgoing.read())
            except OSError:  # it has gone already; the handshake's own error is what counts
                return
