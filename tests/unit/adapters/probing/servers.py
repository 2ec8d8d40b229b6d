"""Small servers on loopback that behave, or misbehave, as asked."""

import asyncio
import base64
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Handler = Callable[[Reader, Writer], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """Serve on a free port, which is yielded; every connection is gone afterwards."""
    tasks: set[asyncio.Task[None] | None] = set()

    async def handle(reader: Reader, writer: Writer) -> None:
        tasks.add(asyncio.current_task())
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            if task is not None:
                task.cancel()
        await asyncio.gather(*(task for task in tasks if task), return_exceptions=True)


async def head_of(reader: Reader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


def saying(*parts: bytes, pause: float = 0, then_wait: bool = False) -> Handler:
    """Read one request, then send the parts, and hang up or wait."""

    async def handle(reader: Reader, writer: Writer) -> None:
        await head_of(reader)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        if then_wait:
            await asyncio.sleep(60)

    return handle


async def silent(_reader: Reader, _writer: Writer) -> None:
    await asyncio.sleep(60)


async def resetting(reader: Reader, writer: Writer) -> None:
    await reader.read(1)
    reset(writer)


def reset(writer: Writer) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Proxy:
    """A forward proxy that finds every target on this machine, and notes what it was sent."""

    def __init__(self, upstream: int = 0, *, credentials: str | None = None) -> None:
        self.upstream = upstream
        self.wanted = (
            f"proxy-authorization: basic {base64.b64encode(credentials.encode()).decode()}".lower()
            if credentials is not None
            else None
        )
        self.heads: list[str] = []
        self.after_connect: list[bytes] = []
        self.connections = 0

    async def __call__(self, reader: Reader, writer: Writer) -> None:
        self.connections += 1
        head = await head_of(reader)
        self.heads.append(head.decode())
        if self.wanted is not None and self.wanted not in head.decode().lower():
            writer.write(
                b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                b'Proxy-Authenticate: Basic realm="p"\r\nContent-Length: 0\r\n\r\n'
            )
            return
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        if head.startswith(b"CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            up_writer.write(head)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up_writer, self.after_connect))
                group.create_task(self._pump(up_reader, writer, []))
        finally:
            up_writer.close()

    async def _pump(self, reader: Reader, writer: Writer, seen: list[bytes]) -> None:
        while data := await reader.read(65536):
            seen.append(data)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()
