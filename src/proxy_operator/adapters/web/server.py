"""A small HTTP server: uvicorn's protocol, inside the operator's own loop and life.

Signals, exit codes and logging stay the operator's: uvicorn's server, which takes them, is not
used.
"""

import asyncio
import logging
import time
from datetime import timedelta
from email.utils import formatdate
from typing import Any, Final, cast

from uvicorn.config import Config
from uvicorn.server import ServerState

from proxy_operator.adapters.web.asgi import Application
from proxy_operator.adapters.web.exchange import Endpoint
from proxy_operator.adapters.web.limits import Limits
from proxy_operator.adapters.web.listener import BACKLOG, Listener
from proxy_operator.adapters.web.protocol import BoundedProtocol

logger = logging.getLogger(__name__)

_LONGEST_TICK: Final = 1.0


class HttpServer:
    """Serves one endpoint on one address."""

    def __init__(
        self, listener: Listener, endpoint: Endpoint, limits: Limits, grace: timedelta
    ) -> None:
        """Give requests under way `grace` to finish when `run` is cancelled."""
        self.name = listener.name
        self._listener = listener
        self._limits = limits
        self._grace = grace
        self._app = Application(endpoint, limits.body_bytes)
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._emptied = asyncio.Event()

    @property
    def bound_port(self) -> int:
        """The port in use, once listening; RuntimeError before."""
        return self._listener.bound.port

    async def start(self) -> None:
        """Listen, unless that was done, and serve. BindError."""
        sock = await self._listener.open()
        loop = asyncio.get_running_loop()
        config = _uvicorn_config(self._app, self._limits)
        self._server = await loop.create_server(
            lambda: BoundedProtocol(config, self._state, self._limits, self._closed),
            sock=sock,
            backlog=BACKLOG,
        )
        self._on_tick()
        where = str(self._listener.bound)
        logger.info("listening", extra={"server": self.name, "address": where})

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
        self._server = None
        self._listener.close()

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
