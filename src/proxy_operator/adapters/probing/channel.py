"""Byte channels to a peer: a plain socket, or TLS over any other channel.

TLS goes through memory BIOs, not through a transport: the client's Finished and the request after
it leave in one segment, which behind a proxy without TCP_NODELAY saves a delayed-ACK wait of some
40 ms, and the same class carries TLS inside TLS.
"""

import asyncio
import socket
import ssl
from typing import Final, Protocol

CHUNK: Final = 16 * 1024


class Channel(Protocol):
    """An ordered stream of bytes in both directions."""

    async def send(self, data: bytes) -> None:
        """Write all of it. OSError, or ssl.SSLError."""

    async def receive(self) -> bytes:
        """Return at least one byte, or none at the end. OSError, or ssl.SSLError."""


class SocketChannel:
    """A connected, non-blocking socket; whoever made it closes it."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self._sock, data)

    async def receive(self) -> bytes:
        return await self._loop.sock_recv(self._sock, CHUNK)


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
