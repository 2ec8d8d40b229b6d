"""An operator at work, whatever its home: the order of its start, and who stops what.

Everything that can refuse a start (token, ports, the home itself) is asked before anything is
made or acts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import NamedTuple, Protocol

from proxy_operator.adapters.telemetry.logging import set_up_logging
from proxy_operator.adapters.web.auth import (
    FileToken,
    StaticToken,
    TokenSource,
    check_exposure,
    read_token,
)
from proxy_operator.adapters.web.bind import Bind
from proxy_operator.adapters.web.listener import Listener
from proxy_operator.app.endpoints import (
    build_discovery,
    build_health_endpoint,
    build_metrics_endpoint,
)
from proxy_operator.app.given import SettingError
from proxy_operator.app.serving import Listening
from proxy_operator.app.settings import Settings
from proxy_operator.app.wiring import Fleet, Foundations, build_fleet
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.manager import Manager

logger = logging.getLogger(__name__)


class OperatorHome(Protocol):
    """Where an operator's objects live."""

    def check(self) -> None:
        """Refuse what can be refused without making or changing anything."""

    def open(self, listening: Listening) -> AbstractAsyncContextManager[Foundations]:
        """Take the home over, for as long as the block lasts, for an operator reached there."""


class _Listeners(NamedTuple):
    discovery: Listener
    metrics: Listener
    health: Listener

    @property
    def bound(self) -> Listening:
        """Where the operator is reached."""
        return Listening(*(listener.bound for listener in self))


async def operate(
    settings: Settings,
    *,
    home: OperatorHome,
    stop: asyncio.Event,
    on_started: Callable[[Listening], None],
) -> None:
    """Work until `stop` is set; `app.serving.Operator` says the rest.

    DataDirError, BindError, SettingError, ClusterConfigError: nothing was started.
    """
    set_up_logging(settings.log.level, settings.log.format)
    home.check()
    tokens, warning = _tokens(settings)
    async with _listeners(settings) as listening, home.open(listening.bound) as base:
        if warning:
            logger.warning(warning)
        own_url = f"http://{reachable(listening.bound.health_probe)}/healthz"
        fleet = build_fleet(base, settings, own_url)
        build_discovery(base, settings, fleet, tokens, listening.discovery)
        build_metrics_endpoint(base, listening.metrics)
        build_health_endpoint(base, listening.health)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_announce(fleet, lambda: on_started(listening.bound)))
            stopping = group.create_task(_stop_when(stop, base.manager))
            await base.manager.run()
            waiting.cancel()
            stopping.cancel()


@contextmanager
def as_setting_error() -> Iterator[None]:
    """Turn what is wrong with a file or a text that a setting names into a SettingError."""
    try:
        yield
    except ValueError as err:
        raise SettingError(str(err)) from err


@asynccontextmanager
async def _listeners(settings: Settings) -> AsyncIterator[_Listeners]:
    listeners = _Listeners(
        discovery=Listener("discovery", settings.discovery.bind),
        metrics=Listener("metrics", settings.endpoints.metrics_bind),
        health=Listener("health-probe", settings.endpoints.health_probe_bind),
    )
    try:
        for listener in listeners:
            await listener.open()
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


async def _announce(fleet: Fleet, tell: Callable[[], None]) -> None:
    for cache in fleet.caches:
        await cache.wait_for_sync()
    tell()


async def _stop_when(stop: asyncio.Event, manager: Manager) -> None:
    await stop.wait()
    manager.request_stop()


def _tokens(settings: Settings) -> tuple[TokenSource | None, str | None]:
    """Return who knows the discovery token, if there is one, and a warning to log."""
    discovery = settings.discovery
    tokens: TokenSource | None = None
    with as_setting_error():
        if discovery.token_file is not None:
            file = FileToken(discovery.token_file, SystemClock())
            file.load()
            tokens = file
        elif discovery.token is not None:
            tokens = StaticToken(read_token(discovery.token))
        warning = check_exposure(
            discovery.bind,
            has_token=tokens is not None,
            allow_unauthenticated=discovery.allow_unauthenticated,
        )
    return tokens, warning


def reachable(bound: Bind) -> Bind:
    """Return the address at which a process on this machine reaches a server bound there."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(bound.host, bound.host)  # noqa: S104 - compared, not bound
    return Bind(host, bound.port)
