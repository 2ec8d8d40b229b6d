"""Providers that look at what passes through them, and note what must never be done."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from proxy_operator.adapters.providers.gcp.manifests import parse_provider_id
from proxy_operator.controllers.orphan_gc.sweeper import SweepSettings
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.decorator import DecoratedProvider

if TYPE_CHECKING:
    from tests.simulation.process import Process
    from tests.simulation.world import Cluster

R = TypeVar("R")
_MIN_AGE = SweepSettings(cluster_id="").min_age


class WatchedMutations(DecoratedProvider):
    """Sits within the fence: what comes here after the term has ended came through it."""

    def __init__(self, inner: Provider, cluster: "Cluster", process: "Process") -> None:
        super().__init__(inner)
        self._cluster = cluster
        self._process = process

    async def around(self, op: str, call: Callable[[], Awaitable[R]]) -> R:
        """Make the call."""
        if op in {"create", "delete"} and not self._process.fence.is_open:
            self._cluster.note(f"{op} by a process that no longer leads")
        return await call()


class SweptProvider(DecoratedProvider):
    """What the sweeper deletes must be as old as it has to be."""

    def __init__(self, inner: Provider, cluster: "Cluster") -> None:
        super().__init__(inner)
        self._cluster = cluster

    async def around(self, op: str, call: Callable[[], Awaitable[R]]) -> R:
        """Make the call."""
        return await call()

    async def delete(self, provider_id: str) -> None:
        """Delete, and note an instance that was too young."""
        cluster, where = self._cluster, parse_provider_id(provider_id)
        life = cluster.universe.life_at(*where) if where else None
        if life is not None and not cluster.has_jumped_lately:
            age = timedelta(seconds=cluster.universe.cloud.now() - life.born_at)
            if age <= _MIN_AGE - timedelta(seconds=1):
                cluster.note(f"the sweep deletes {provider_id}, which is {age} old")
        await super().delete(provider_id)
