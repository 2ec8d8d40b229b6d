"""The home in a Kubernetes cluster: an operator among several, of which one leads."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from proxy_operator.adapters.admission.validate import Admission
from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.client import KubeClient
from proxy_operator.adapters.kube.events import EventApi
from proxy_operator.adapters.kube.in_cluster import is_in_cluster
from proxy_operator.adapters.kube.leader_lock import LeaderLock
from proxy_operator.adapters.kube.object_client import KubeObjectClient
from proxy_operator.adapters.kube.resources import NAMESPACE, Document, Resource, ResourceClient
from proxy_operator.adapters.kube.sources import discover_access
from proxy_operator.adapters.probing.prober import ProxyProber
from proxy_operator.adapters.probing.tls import probe_tls_context
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings
from proxy_operator.adapters.providers.kubernetes.provider import KubernetesProvider
from proxy_operator.adapters.telemetry.logging import set_up_logging
from proxy_operator.app.client import open_home
from proxy_operator.app.clouds import CloudProviders
from proxy_operator.app.given import SettingError
from proxy_operator.app.operating import as_setting_error
from proxy_operator.app.serving import Listening
from proxy_operator.app.session import Narrator, Searched, delete_leftovers, tear_down
from proxy_operator.app.settings import Settings, leader_timing
from proxy_operator.app.wiring import Foundations, build_fleet, leader_recorder, new_metrics
from proxy_operator.controllers.events import EventQueue
from proxy_operator.domain.proxy import ProviderName
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.term_fence import TermFence
from proxy_operator.runtime.clock import Clock, SystemClock
from proxy_operator.runtime.election import StoredRecord
from proxy_operator.runtime.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ObjectError,
    UnavailableError,
)
from proxy_operator.runtime.lock_elector import LockElector, new_identity
from proxy_operator.runtime.manager import Manager
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ratelimit import jittered
from proxy_operator.runtime.term import Term
from proxy_operator.runtime.watchdog import Watchdog

logger = logging.getLogger(__name__)

_LOCK: Final = "proxy-operator"
_OUTSIDE: Final = "proxy-operator"
"""The namespace that the operator is installed in, unless somebody chose another one."""


_PATIENCE: Final = timedelta(seconds=100)
"""Within the two minutes that the Deployment's startupProbe gives."""
_RETRY_BASE: Final = timedelta(seconds=1)
_RETRY_CAP: Final = timedelta(seconds=5)
_HINT: Final = "; to keep objects on this machine, add --standalone (PROXY_OPERATOR_STANDALONE)"


class HeldLock(NamedTuple):
    """The operators' Lease, and who takes part in the election for this process."""

    lock: LeaderLock
    elector: LockElector


class ClusterHome:
    """Implements `app.operating.OperatorHome` on the cluster of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()

    def check(self) -> None:
        """Refuse a start without a cluster to work in. SettingError."""
        try:
            self._access()
        except ClusterConfigError as err:
            hint = "" if self._settings.home.is_cluster else _HINT
            raise SettingError(f"{err}{hint}") from err

    @asynccontextmanager
    async def open(self, listening: Listening) -> AsyncIterator[Foundations]:  # noqa: ARG002 - nobody here must know it
        """Connect. UnavailableError or ForbiddenError when the cluster cannot be used."""
        async with self.open_beside_lock() as (foundations, _):
            yield foundations

    @asynccontextmanager
    async def open_beside_lock(self) -> AsyncIterator[tuple[Foundations, HeldLock]]:
        """Do as `open` does, and give the lock that the manager stands for election by."""
        settings, clock, access = self._settings, self._clock, self._access()
        with as_setting_error():
            prober = ProxyProber(probe_tls_context(settings.health.ca_file), clock)
        metrics = new_metrics()
        term = Term(leader_timing(settings), Watchdog())
        # The lock has connections of its own: it must not wait for its turn behind a fleet.
        async with KubeClient(access) as client, KubeClient(access) as lock_client:
            # In a Pod every early end doubles the wait for the next start.
            patience = _PATIENCE if is_in_cluster(os.environ) else timedelta(0)
            cluster_id = settings.cluster_id or await own_id_within(
                ResourceClient(client), patience, clock
            )
            lock = LeaderLock(lock_client, self._lock_key(access))
            elector = LockElector(lock, new_identity(), term, clock, leader_recorder(metrics))

            def kubernetes() -> Provider:
                return KubernetesProvider(
                    ResourceClient(client),
                    PodSettings(
                        image=settings.providers.squid_image,
                        allowed_targets=settings.providers.allow_targets,
                    ),
                    cluster_id=cluster_id,
                    namespace=settings.watch_namespace,
                    clock=clock,
                )

            clouds = CloudProviders(settings.providers, cluster_id, clock)
            try:
                foundations = Foundations(
                    client=KubeObjectClient(client, Admission()),
                    events=EventQueue(EventApi(client, socket.gethostname()), clock),
                    cluster_id=cluster_id,
                    providers={ProviderName.KUBERNETES: kubernetes, **clouds.makers},
                    clock=clock,
                    manager=Manager(clock, elector),
                    prober=prober,
                    metrics=metrics,
                    fence=TermFence(term),
                )
                yield foundations, HeldLock(lock, elector)
            finally:
                prober.close()
                await clouds.close()

    async def lock_obstacle(self) -> str | None:
        """Say why no operator can lead by the lock of the settings, or nothing."""
        access = self._access()
        async with KubeClient(access) as client:
            return await lock_obstacle(ResourceClient(client), self._lock_key(access).namespace)

    def _access(self) -> ClusterAccess:
        cluster = self._settings.cluster
        return discover_access(cluster.kubeconfig, cluster.context, os.environ, self._clock)

    def _lock_key(self, access: ClusterAccess) -> ObjectKey:
        own = access.namespace if is_in_cluster(os.environ) else None
        namespace = self._settings.cluster.leader_namespace or own or _OUTSIDE
        return ObjectKey(namespace, _LOCK)


async def down(settings: Settings, narrator: Narrator) -> Searched:
    """Do what `homes.take_down` promises.

    The operator that leads does the work. When none does, this process stands for election and
    does it itself.
    """
    set_up_logging(settings.log.level, settings.log.format)
    operators = ClusterHome(settings)
    obstacle = await operators.lock_obstacle()
    if obstacle is not None:
        narrator.line(obstacle)
    async with operators.open_beside_lock() as (base, held):
        fleet = build_fleet(base, settings, None)
        async with asyncio.TaskGroup() as group:
            working = group.create_task(base.manager.run())
            async with open_home(settings.home) as home:
                await tear_down(home, narrator, namespace=settings.watch_namespace)
            # Pods are looked for in the watched namespace; a cloud does not tell one.
            only = (ProviderName.KUBERNETES,) if settings.is_owner_hidden else None
            searched = await delete_leftovers(
                fleet.providers, narrator, lambda: base.manager.is_leader, only=only
            )
            base.manager.request_stop()
            await working
        await leave_no_lease(held.lock, held.elector.released, narrator)
    return searched


class RemovableLock(Protocol):
    """What is asked of a Lease at the end."""

    async def delete(self, stored: StoredRecord) -> None:
        """Remove that version of it; ConflictError, NotFoundError, or why it could not be."""


async def leave_no_lease(
    lock: RemovableLock, released: StoredRecord | None, narrator: Narrator
) -> None:
    """Remove the Lease that this process held last, unless somebody has written to it since."""
    if released is None:
        return
    try:
        await lock.delete(released)
    except (ConflictError, NotFoundError):
        return  # another operator has it
    except ObjectError as err:
        narrator.line(f"the operators' Lease is left: {err}")


class NamespaceReader(Protocol):
    """What is asked of a cluster about a namespace."""

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        """Return the object; NotFoundError, ForbiddenError."""


async def lock_obstacle(cluster: NamespaceReader, namespace: str) -> str | None:
    """Say why no Lease can be had in a namespace; nothing when it can, or nobody may know."""
    try:
        found = await cluster.get(NAMESPACE, ObjectKey("", namespace))
    except NotFoundError:
        state = "does not exist"
    except ForbiddenError:
        return None
    else:
        if "deletionTimestamp" not in found["metadata"]:
            return None
        state = "is on its way out"
    return (
        f"namespace {namespace} {state}, so this command cannot hold the operators' Lease there"
        " and waits for an operator elsewhere; if none runs, name another namespace with"
        " --leader-namespace"
    )


async def own_id(cluster: NamespaceReader) -> str:
    """Return the UID of kube-system, which lives as long as the cluster."""
    key = ObjectKey("", "kube-system")
    try:
        found = await cluster.get(NAMESPACE, key)
    except ForbiddenError as err:
        raise SettingError(
            f"the cluster's id cannot be read, set --cluster-id (PROXY_OPERATOR_CLUSTER_ID): {err}"
        ) from err
    uid: str = found["metadata"]["uid"]
    return uid


async def own_id_within(cluster: NamespaceReader, patience: timedelta, clock: Clock) -> str:
    """Return the UID of kube-system, waiting so long for an API server that is away."""
    ends_at = clock.monotonic() + patience.total_seconds()
    failures = 0
    while True:
        try:
            return await own_id(cluster)
        except UnavailableError as err:
            if clock.monotonic() >= ends_at:
                raise
            logger.warning("waiting for the API server", extra={"error": str(err)})
        await asyncio.sleep(jittered(failures, _RETRY_BASE, _RETRY_CAP).total_seconds())
        failures += 1
