"""Homes as the commands see them: the store of a data directory, or a cluster.

Commands read and write beside a running operator; nothing of the operator is started here.
"""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.app.settings import HomeAddress
from proxy_operator.domain.event import RecordedEvent
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.objects import ObjectClient, ObjectKey

_DEFAULT_NAMESPACE = "default"


class EventReader(Protocol):
    """Tells what happened to an object."""

    async def events_of(self, key: ObjectKey, uid: str | None = None) -> list[RecordedEvent]:
        """Return the Events still kept, latest last; without `uid`, of all of that name."""


@dataclass(frozen=True, kw_only=True)
class Home:
    """Where objects live."""

    client: ObjectClient
    events: EventReader
    admission: Admission
    is_operator_running: Callable[[], bool]
    """Whether somebody is there to carry out what is asked for; yes where it cannot be told."""


def open_home(address: HomeAddress, *, create: bool = False) -> AbstractAsyncContextManager[Home]:
    """Open a home; `create` makes a missing data directory. DataDirError, ClusterConfigError."""
    if address.is_cluster:
        return _open_cluster(address)
    return _open_data_dir(address.data_dir, create=create)


def default_namespace(address: HomeAddress) -> str:
    """Return the namespace of an object for which none is named. ClusterConfigError."""
    if not address.is_cluster:
        return _DEFAULT_NAMESPACE
    from proxy_operator.adapters.kube.sources import discover_access  # noqa: PLC0415 - clusters only

    access = discover_access(address.kubeconfig, address.context, os.environ, SystemClock())
    return access.namespace or _DEFAULT_NAMESPACE


@asynccontextmanager
async def _open_data_dir(path: Path, *, create: bool) -> AsyncIterator[Home]:
    from proxy_operator.adapters.embedded.data_dir import DataDir  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.embedded.database import Database  # noqa: PLC0415
    from proxy_operator.adapters.embedded.events import EventLog  # noqa: PLC0415
    from proxy_operator.adapters.embedded.object_store import SqliteObjectClient  # noqa: PLC0415
    from proxy_operator.adapters.embedded.operator_lock import is_operator_running  # noqa: PLC0415

    directory = DataDir(path)
    directory.prepare(create=create)
    database = Database(directory.store_path)
    await database.open(create=create)
    try:
        admission, clock = Admission(), SystemClock()
        yield Home(
            client=SqliteObjectClient(database, admission, clock),
            events=EventLog(database, clock),
            admission=admission,
            is_operator_running=lambda: is_operator_running(directory),
        )
    finally:
        await database.close()


@asynccontextmanager
async def _open_cluster(address: HomeAddress) -> AsyncIterator[Home]:
    from proxy_operator.adapters.kube.client import KubeClient  # noqa: PLC0415 - this home only
    from proxy_operator.adapters.kube.events import EventApi  # noqa: PLC0415
    from proxy_operator.adapters.kube.object_client import KubeObjectClient  # noqa: PLC0415
    from proxy_operator.adapters.kube.sources import discover_access  # noqa: PLC0415

    access = discover_access(address.kubeconfig, address.context, os.environ, SystemClock())
    admission = Admission()
    async with KubeClient(access) as client:
        yield Home(
            client=KubeObjectClient(client, admission),
            events=EventApi(client, "proxy-operator"),
            admission=admission,
            is_operator_running=lambda: True,
        )
