"""A TCP relay in front of an API server: the network, with its ways to fail.

A connection that has lost bytes is lost for good, as TLS would be: what follows `silence` are new
connections.
"""

import asyncio
import contextlib
import socket
import struct
from urllib.parse import urlsplit

from tests.integration.listener import Listener

_RESET = struct.pack("ii", 1, 0)
"""With such a SO_LINGER, close sends RST instead of FIN (socket(7))."""
_CHUNK = 65536


class _Connection:
    """Both ways between a client and the server."""

    def __init__(self, relay: "Relay", client: asyncio.StreamWriter) -> None:
        self.relay = relay
        self.is_silent = relay.is_silent
        self.ends = [client]
        self.is_over = asyncio.Event()
        self._is_reset = asyncio.Event()

    def reset(self) -> None:
        for end in self.ends:
            # It may have ended by itself a moment ago.
            with contextlib.suppress(OSError):
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.transport.abort()
        self._is_reset.set()

    async def until_reset(self) -> None:
        await self._is_reset.wait()
        raise ConnectionError("reset")


class Relay(Listener):
    """Carries bytes, late or not at all if told so."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._target = address.hostname, address.port
        self._connections: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self.is_silent = False
        self.delay = 0.0
        """Seconds that bytes are on their way, in each direction."""
        self.accepted = 0
        super().__init__()
        self.url = f"{address.scheme}://127.0.0.1:{self._port}"

    def heal(self) -> None:
        """Pass everything at once."""
        self.delay = 0.0
        self.is_silent = False
        self._loop.run(self._start())

    def cut(self) -> None:
        """Reset every connection; new ones may follow."""
        self._loop.run(self._cut())

    def refuse(self) -> None:
        """Reset every connection and let no new one come about."""
        self._loop.run(self._refuse())

    def silence(self) -> None:
        """Swallow every byte both ways from now on, without a word that connections are dead."""
        self.is_silent = True
        self._loop.run(self._silence(list(self._connections)))

    def silence_present(self) -> None:
        """Let the connections there are go silent; new ones pass."""
        self._loop.run(self._silence(list(self._connections)))

    async def _start(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        for connection in list(self._connections):
            connection.reset()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _end(self) -> None:
        await self._refuse()
        await asyncio.gather(*(connection.is_over.wait() for connection in self._connections))

    async def _silence(self, connections: list[_Connection]) -> None:
        for connection in connections:
            connection.is_silent = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        connection = _Connection(self, writer)
        self._connections.add(connection)
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            connection.ends.append(far_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(connection.until_reset())
                group.create_task(_carry(connection, reader, far_writer))
                group.create_task(_carry(connection, far_reader, writer))
        except* OSError:
            pass  # one end is gone, so the other one goes
        finally:
            self._connections.discard(connection)
            for end in connection.ends:
                end.transport.abort()
            connection.is_over.set()


async def _carry(
    connection: _Connection, source: asyncio.StreamReader, sink: asyncio.StreamWriter
) -> None:
    """Carry one direction to its end; whatever is late does not hold up what comes after it."""
    loop = asyncio.get_running_loop()
    on_its_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def deliver() -> None:
        while True:
            due, data = await on_its_way.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if connection.is_silent:
                continue
            if not data:
                break
            sink.write(data)
            await sink.drain()
        # Nothing half-open is of use to a client of HTTP.
        raise ConnectionError("one end closed")

    async with asyncio.TaskGroup() as group:
        group.create_task(deliver())
        while data := await source.read(_CHUNK):
            on_its_way.put_nowait((loop.time() + connection.relay.delay, data))
        on_its_way.put_nowait((loop.time() + connection.relay.delay, b""))
