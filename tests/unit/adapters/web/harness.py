"""The discovery API over a fleet, in memory or on a loopback socket, and raw sockets to it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from proxy_operator.adapters.web.auth import BearerGuard, Guard, StaticToken
from proxy_operator.adapters.web.bind import Bind
from proxy_operator.adapters.web.dispatch import Dispatcher, discovery_endpoint
from proxy_operator.adapters.web.exchange import Endpoint, Response
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.listener import Listener
from proxy_operator.adapters.web.server import HttpServer
from tests.unit.discovery.fleet import Fleet

TOKEN = "t0ken-for-tests"
LOOPBACK = Bind("127.0.0.1", 0)
QUICK = Limits(
    head_timeout=timedelta(seconds=0.3),
    body_timeout=timedelta(seconds=0.3),
    write_timeout=timedelta(seconds=0.5),
    idle_timeout=timedelta(seconds=1),
    linger=timedelta(seconds=0.2),
    connections=8,
)


class Reply(NamedTuple):
    """An answer as a client reads it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        found: str = self.json["error"]
        assert set(self.json) >= {"error", "message"}
        assert self.json["message"]
        return found


class Api:
    """Asks a dispatcher without any socket."""

    def __init__(
        self,
        fleet: Fleet,
        guard: Guard | None = None,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        self.fleet = fleet
        self.endpoint: Dispatcher = discovery_endpoint(
            fleet.service, guard or BearerGuard(StaticToken(TOKEN.encode())), is_leader
        )

    def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        token: str | None = TOKEN,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> Reply:
        """Send a request; a body that is not bytes is sent as JSON."""
        path, _, query = target.partition("?")
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        sent = [(b"host", b"127.0.0.1"), *headers]
        if token is not None:
            sent.append((b"authorization", f"Bearer {token}".encode()))
        if raw:
            sent.append((b"content-length", b"%d" % len(raw)))
            refusal = self.endpoint.refuse(method, path, sent)
            if refusal is not None:
                return as_reply(refusal)
        return as_reply(self.endpoint.dispatch(method, path, query, sent, raw))


def as_reply(response: Response) -> Reply:
    headers = {name.decode(): value.decode() for name, value in response.headers}
    return Reply(response.status, headers, response.body)


@asynccontextmanager
async def serving(
    endpoint: Endpoint, limits: Limits = QUICK, grace: float = 5
) -> AsyncIterator[HttpServer]:
    server = HttpServer(Listener("test", LOOPBACK), endpoint, limits, timedelta(seconds=grace))
    await server.start()
    try:
        yield server
    finally:
        await server.stop(timedelta(seconds=grace))


class Client:
    """A raw connection: sends any bytes, reads answers one by one."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def read(self, *, has_body: bool = True) -> Reply:
        """Read one answer within a few seconds; EOFError when the server closed instead."""
        async with asyncio.timeout(10):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionResetError) as err:
                raise EOFError from err
            status, *lines = head.decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines if line)
            size = int(headers.get("content-length", 0)) if has_body else 0
            return Reply(int(status.split()[1]), headers, await self.reader.readexactly(size))

    async def ask(self, data: bytes) -> Reply:
        self.send(data)
        return await self.read()

    async def is_closed(self) -> bool:
        """Wait a few seconds for the server to end the connection; nothing more may come."""
        async with asyncio.timeout(10):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


@asynccontextmanager
async def connected(server: HttpServer) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.bound_port)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()
        # The transport is gone once the loop has run its call to connection_lost.
        await asyncio.sleep(0)


def request(
    method: str = "GET",
    target: str = "/healthz",
    *headers: str,
    body: bytes = b"",
    token: str | None = TOKEN,
) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", *headers]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
