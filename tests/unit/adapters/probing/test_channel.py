"""Channels without a network: what leaves when, and how much is kept."""

import asyncio
import ssl

import pytest

from proxy_operator.adapters.probing.channel import CHUNK, SocketChannel, TlsChannel


class Peer:
    """The server's end of a TLS connection, as the channel that leads to it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.flights: list[bytes] = []
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_done = False
        self.text = b""

    async def send(self, data: bytes) -> None:
        self.flights.append(data)
        self._incoming.write(data)
        try:
            if not self._is_done:
                self._tls.do_handshake()
                self._is_done = True
            self.text += self._tls.read(CHUNK)
        except ssl.SSLWantReadError:
            pass

    async def receive(self) -> bytes:
        return self._outgoing.read()


async def test_the_end_of_the_handshake_leaves_with_the_request(client_context, tls):
    peer = Peer(tls)
    channel = TlsChannel(peer, client_context, "target.example")
    await channel.handshake()
    assert len(peer.flights) == 1
    await channel.send(b"GET / HTTP/1.1\r\n\r\n")
    assert len(peer.flights) == 2
    assert peer.text == b"GET / HTTP/1.1\r\n\r\n"


class FakeTransport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.is_reading_now = True

    def pause_reading(self) -> None:
        self.is_reading_now = False

    def resume_reading(self) -> None:
        self.is_reading_now = True


async def test_a_flood_is_not_kept():
    channel, transport = SocketChannel(), FakeTransport()
    channel.connection_made(transport)
    channel.data_received(b"x" * (CHUNK - 1))
    assert transport.is_reading_now
    channel.data_received(b"y" * 100)
    assert not transport.is_reading_now
    assert len(await channel.receive()) == CHUNK
    assert not transport.is_reading_now
    assert await channel.receive() == b"y" * 99
    assert transport.is_reading_now


async def test_what_came_before_the_end_is_still_read():
    channel = SocketChannel()
    channel.connection_made(FakeTransport())
    channel.data_received(b"last words")
    channel.connection_lost(ConnectionResetError("gone"))
    assert await channel.receive() == b"last words"
    with pytest.raises(ConnectionResetError):
        await channel.receive()
    with pytest.raises(ConnectionResetError):
        await channel.send(b"anyone?")
