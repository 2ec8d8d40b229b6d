"""The standalone home: an operator on the objects of a data directory."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.embedded.data_dir import DataDir
from proxy_operator.adapters.embedded.database import Database
from proxy_operator.adapters.embedded.errors import DataDirError
from proxy_operator.adapters.embedded.events import EventLog
from proxy_operator.adapters.embedded.object_store import SqliteObjectClient
from proxy_operator.adapters.embedded.operator_lock import (
    OperatorLock,
    is_operator_running,
    refuse_second_operator,
)
from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.adapters.probing.tls import probe_tls_context
from proxy_operator.adapters.providers.local.provider import LocalProvider
from proxy_operator.adapters.providers.local.reach import Reach, write_reach
from proxy_operator.adapters.telemetry.logging import set_up_logging
from proxy_operator.app.client import open_home
from proxy_operator.app.clouds import CloudProviders
from proxy_operator.app.operating import as_setting_error, reachable
from proxy_operator.app.serving import Listening
from proxy_operator.app.session import Narrator, Searched, delete_leftovers, tear_down
from proxy_operator.app.settings import Settings
from proxy_operator.app.wiring import (
    Foundations,
    build_fleet,
    leader_recorder,
    new_metrics,
)
from proxy_operator.controllers.events import EventQueue
from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Provider
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.manager import Manager

INSTANCES: Final = "instances"
_LOCK: Final = "proxy-operator"


class StandaloneHome:
    """Implements `app.operating.OperatorHome` on the data directory of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = DataDir(settings.data_dir)

    def check(self) -> None:
        """Refuse a directory that is not ours, or has an operator already. DataDirError."""
        if self._directory.path.exists():
            self._directory.prepare(create=False)
            refuse_second_operator(self._directory)

    @asynccontextmanager
    async def open(self, listening: Listening | None) -> AsyncIterator[Foundations]:
        """Take the data directory over: its lock, its store, its id. DataDirError.

        Without `listening` what local proxies may connect to stays as it is.
        """
        settings, clock = self._settings, SystemClock()
        with as_setting_error():
            prober = ProxyProber(probe_tls_context(settings.health.ca_file), clock)
        directory = self._directory
        directory.prepare(create=True)
        metrics = new_metrics()
        leader_recorder(metrics).leads(_LOCK, is_leading=True)
        async with OperatorLock(directory):
            database = Database(directory.store_path)
            await database.migrate()
            await database.open(create=True)
            cluster_id = settings.cluster_id or await database.cluster_id()
            instances = directory.path / INSTANCES
            if listening is not None:
                await self._tell_instances(instances, listening)

            def local() -> Provider:
                return LocalProvider(
                    instances,
                    bind=settings.providers.local_bind,
                    cluster_id=cluster_id,
                    clock=clock,
                )

            clouds = CloudProviders(settings.providers, cluster_id, clock)
            try:
                yield Foundations(
                    client=SqliteObjectClient(database, Admission(), clock),
                    events=EventQueue(EventLog(database, clock), clock),
                    cluster_id=cluster_id,
                    providers={ProviderName.LOCAL: local, **clouds.makers},
                    clock=clock,
                    manager=Manager(clock),
                    prober=prober,
                    metrics=metrics,
                )
            finally:
                prober.close()
                await clouds.close()
                await database.close()

    async def _tell_instances(self, instances: Path, listening: Listening) -> None:
        """Tell local proxies, those of earlier operators too, what they may connect to now."""
        reach = Reach(
            api_ports=(listening.discovery.port, listening.metrics.port),
            health_port=listening.health_probe.port,
            allowed=self._settings.providers.allow_targets,
            health_host=reachable(listening.health_probe).host,
        )
        try:
            await asyncio.to_thread(write_reach, instances, reach)
        except OSError as err:
            reason = os.strerror(err.errno or 0)
            raise DataDirError(f"{self._settings.data_dir}: {reason}") from err


async def down(settings: Settings, narrator: Narrator) -> Searched:
    """Do what `homes.take_down` promises.

    An operator that runs does the work, else this process does.
    """
    set_up_logging(settings.log.level, settings.log.format)
    directory = DataDir(settings.data_dir)
    directory.prepare(create=False)
    if is_operator_running(directory):
        async with open_home(settings.home) as home:
            await tear_down(home, narrator, namespace=settings.watch_namespace)
        return Searched((), ())
    async with StandaloneHome(settings).open(None) as base:
        fleet = build_fleet(base, settings, None)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(base.manager.run())
            async with open_home(settings.home) as home:
                await tear_down(home, narrator, namespace=settings.watch_namespace)
            base.manager.request_stop()
            await working
        # An instance does not tell the namespace of its Proxy.
        only = () if settings.is_owner_hidden else None
        return await delete_leftovers(fleet.providers, narrator, lambda: True, only=only)
