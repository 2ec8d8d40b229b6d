"""The standalone home: an operator on the objects of a data directory.

Everything that can refuse a start (directory, lock, store, token, ports) is done before anything
acts.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.events import EventLog
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.adapters.embedded.operator_lock import OperatorLock, is_operator_running
from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.adapters.probing.tls import probe_tls_context
from proxy_operator.adapters.telemetry.logging import set_up_logging
from proxy_operator.adapters.web.auth import (
    FileToken,
    StaticToken,
    TokenSource,
    check_exposure,
    read_token,
)
from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.client import open_home
from proxy_operator.app.serving import Listening
from proxy_operator.app.session import Narrator, tear_down
from proxy_operator.app.settings import SettingError, Settings
from proxy_operator.app.wiring import (
    Fleet,
    Foundations,
    build_discovery,
    build_fleet,
    build_health_endpoint,
    build_metrics_endpoint,
)
from proxy_operator.controllers.events import EventQueue
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.clock import Clock, SystemClock
from proxy_operator.runtime.manager import Manager

logger = logging.getLogger(__name__)

_INSTANCES = "instances"
_POLL_SECONDS = 0.25


async def run(
    settings: Settings, *, stop: asyncio.Event, on_started: Callable[[Listening], None]
) -> None:
    """Work until `stop` is set; `app.serving.Operator` says the rest.

    DataDirError, BindError, SettingError: nothing was started.
    """
    set_up_logging(settings.log.level, settings.log.format)
    tokens = _tokens(settings, SystemClock())
    async with _foundations(settings) as base:
        health = build_health_endpoint(base, settings.endpoints.health_probe_bind)
        await health.listen()
        own_url = f"http://{_reachable(settings.endpoints.health_probe_bind, health.bound_port)}"
        fleet = build_fleet(base, settings, f"{own_url}/healthz")
        discovery = build_discovery(base, settings, fleet, tokens)
        metrics = build_metrics_endpoint(base, settings.endpoints.metrics_bind, fleet)
        servers = (discovery, metrics, health)
        try:
            await discovery.listen()
            await metrics.listen()
            listening = Listening(
                *(Bind(server.bind.host, server.bound_port) for server in servers)
            )
            async with asyncio.TaskGroup() as group:
                waiting = group.create_task(_announce(fleet, lambda: on_started(listening)))
                stopping = group.create_task(_stop_when(stop, base.manager))
                await base.manager.run()
                waiting.cancel()
                stopping.cancel()
        finally:
            for server in servers:
                server.close()


async def down(settings: Settings, narrator: Narrator) -> None:
    """Delete every Proxy and return when no instance is left.

    An operator that runs does the work, else this process does.
    """
    set_up_logging(settings.log.level, settings.log.format)
    directory = DataDir(settings.data_dir)
    directory.prepare(create=False)
    if is_operator_running(directory):
        async with open_home(settings.data_dir) as home:
            await tear_down(home, narrator)
        return
    async with _foundations(settings) as base:
        fleet = build_fleet(base, settings, None)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(base.manager.run())
            async with open_home(settings.data_dir) as home:
                await tear_down(home, narrator)
            base.manager.request_stop()
            await working
        await _delete_leftovers(fleet, narrator)


@asynccontextmanager
async def _foundations(settings: Settings) -> AsyncIterator[Foundations]:
    """Take the data directory over: its lock, its store, its id."""
    clock = SystemClock()
    with _as_setting_error():
        prober = ProxyProber(probe_tls_context(settings.health.ca_file), clock)
    directory = DataDir(settings.data_dir)
    directory.prepare(create=True)
    async with OperatorLock(directory):
        database = Database(directory.store_path)
        await database.migrate()
        await database.open(create=True)
        try:
            yield Foundations(
                client=SqliteObjectClient(database, Admission(), clock),
                events=EventQueue(EventLog(database, clock), clock),
                cluster_id=settings.cluster_id or await database.cluster_id(),
                instances=directory.path / _INSTANCES,
                clock=clock,
                manager=Manager(clock),
                prober=prober,
            )
        finally:
            prober.close()
            await database.close()


async def _announce(fleet: Fleet, tell: Callable[[], None]) -> None:
    for cache in fleet.caches:
        await cache.wait_for_sync()
    tell()


async def _stop_when(stop: asyncio.Event, manager: Manager) -> None:
    await stop.wait()
    manager.request_stop()


async def _delete_leftovers(fleet: Fleet, narrator: Narrator) -> None:
    """Delete what no Proxy owns, however young: nobody else works on this directory."""
    for name, provider in fleet.providers.available():
        while True:
            try:
                left = (await provider.list_by_tag()).items
                for instance in left:
                    await provider.delete(instance.provider_id)
            except ProviderError as err:
                narrator.live(f"instances of {name} cannot be deleted yet: {err}")
                left = None
            if left is not None and not left:
                break
            if left:
                narrator.live(f"waiting for {len(left)} instances without a Proxy to go")
            await asyncio.sleep(_POLL_SECONDS)


def _tokens(settings: Settings, clock: Clock) -> TokenSource | None:
    """Return who knows the discovery token; None when there is none, which is said loudly."""
    discovery = settings.discovery
    tokens: TokenSource | None = None
    with _as_setting_error():
        if discovery.token_file is not None:
            file = FileToken(discovery.token_file, clock)
            file.load()
            tokens = file
        elif discovery.token is not None:
            tokens = StaticToken(read_token(discovery.token))
        warning = check_exposure(
            discovery.bind,
            has_token=tokens is not None,
            allow_unauthenticated=discovery.allow_unauthenticated,
        )
    if warning:
        logger.warning(warning)
    return tokens


@contextmanager
def _as_setting_error() -> Iterator[None]:
    try:
        yield
    except ValueError as err:
        raise SettingError(str(err)) from err


def _reachable(bind: Bind, port: int) -> Bind:
    """Return the address at which a process on this machine reaches a server bound there."""
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(bind.host, bind.host)  # noqa: S104 - compared, not bound
    return Bind(host, port)
