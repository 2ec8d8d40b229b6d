"""A small HTTP server: uvicorn's protocol, inside the operator's own loop and life.

Signals, exit codes and logging stay the operator's: uvicorn's server, which takes them, is not
used. Sockets are bound before anything is served.
"""

import asyncio
import errno
import logging
import os
import socket
import time
from datetime import timedelta
from email.utils import formatdate
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from proxy_operator.adapters.web.asgi import Application
from proxy_operator.adapters.web.bind import Bind, BindError
from proxy_operator.adapters.web.exchange import Endpoint
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.protocol import BoundedProtocol

logger = logging.getLogger(__name__)

_BACKLOG: Final = 512
_LONGEST_TICK: Final = 1.0


class HttpServer:
    """Serves one endpoint on one address."""

    def __init__(
        self, name: str, bind: Bind, endpoint: Endpoint, limits: Limits, grace: timedelta
    ) -> None:
        """`grace` is how long a cancelled `run` lets requests under way finish."""
        self.name = name
        self._bind = bind
        self._limits = limits
        self._grace = grace
        self._app = Application(endpoint, limits.body_bytes)
        self._state = ServerState()
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    @property
    def bound_port(self) -> int:
        """The port in use, once listening; RuntimeError before."""
        if self._socket is None:
            raise RuntimeError(f"{self.name} is not started")
        port: int = self._socket.getsockname()[1]
        return port

    @property
    def bind(self) -> Bind:
        """The address that was asked for."""
        return self._bind

    async def listen(self) -> None:
        """Take the address; clients wait until `start`. BindError says why it cannot be had."""
        self._socket = await _listen(self.name, self._bind)

    def close(self) -> None:
        """Give the address back when nothing was served; harmless otherwise."""
        if self._socket is not None and self._server is None:
            self._socket.close()

    async def start(self) -> None:
        """Listen, unless that was done, and serve. BindError."""
        if self._socket is None:
            self._socket = await _listen(self.name, self._bind)
        loop = asyncio.get_running_loop()
        config = _uvicorn_config(self._app, self._limits)
        self._server = await loop.create_server(
            lambda: BoundedProtocol(config, self._state, self._limits, self._closed),
            sock=self._socket,
            backlog=_BACKLOG,
        )
        self._on_tick()
        where = Bind(self._bind.host, self.bound_port)
        logger.info("listening", extra={"server": self.name, "address": str(where)})

    async def stop(self, grace: timedelta) -> None:
        """Accept nothing more, let requests under way finish for so long, then cut them off."""
        if self._server is None:
            return
        self._server.close()
        for connection in self._connections():
            connection.shutdown()
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._drained()
        except TimeoutError:
            logger.warning(
                "requests cut off at shutdown",
                extra={"server": self.name, "count": len(self._state.connections)},
            )
            for connection in self._connections():
                connection.transport.abort()
            await self._drained()
        if self._tick is not None:
            self._tick.cancel()
        self._server = self._socket = None

    async def run(self) -> None:
        """Serve until cancelled, then stop within the grace."""
        if self._server is None:
            await self.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self.stop(self._grace)

    async def drain(self, within: timedelta) -> None:
        """Finish what is under way; `run` has nothing left to do afterwards."""
        await self.stop(within)

    def _connections(self) -> list[BoundedProtocol]:
        return cast("list[BoundedProtocol]", [*self._state.connections])

    def _closed(self) -> None:
        if not self._state.connections:
            self._emptied.set()

    async def _drained(self) -> None:
        while self._state.connections:
            self._emptied.clear()
            await self._emptied.wait()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _on_tick(self) -> None:
        loop = asyncio.get_running_loop()
        self._state.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode())]  # noqa: TID251 - the Date header is the machine's wall clock (RFC 9110 section 6.6.1)
        now = loop.time()
        for connection in self._connections():
            connection.check_deadlines(now)
        self._tick = loop.call_later(self._tick_seconds(), self._on_tick)

    def _tick_seconds(self) -> float:
        spans = (
            self._limits.head_timeout,
            self._limits.body_timeout,
            self._limits.write_timeout,
            self._limits.linger,
        )
        return min(_LONGEST_TICK, min(spans).total_seconds() / 2)


def _uvicorn_config(app: Application, limits: Limits) -> Config:
    config = Config(
        cast("Any", app),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.idle_timeout.total_seconds()),
        workers=1,
    )
    config.load()
    return config


async def _listen(name: str, bind: Bind) -> socket.socket:
    try:
        if not bind.host or bind.host == "::":
            return _listen_everywhere(bind)
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as err:
        raise BindError(f"cannot listen on {bind} for {name}: {_reason(err)}") from err


def _listen_everywhere(bind: Bind) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("::", bind.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
        )
    if bind.host:
        raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
    return socket.create_server(("0.0.0.0", bind.port), backlog=_BACKLOG)  # noqa: S104 - asked for


def _reason(err: OSError) -> str:
    if isinstance(err, socket.gaierror):
        return f"the host name is unknown ({err.strerror})"
    if err.errno == errno.EADDRINUSE:
        return "another program uses the port"
    return (err.strerror or str(err)).lower()
