"""One life of an operator: caches, queue, reconciler, sweeper and provider, wired as at home."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from proxy_operator.controllers.orphan_gc.sweeper import OrphanSweeper, SweepSettings
from proxy_operator.controllers.proxy.context import Intervals, Ports, Surroundings
from proxy_operator.controllers.proxy.reconciler import ProxyReconciler
from proxy_operator.controllers.proxy.watches import REFERENCE_INDEX, proxies_using, secrets_of
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.provisioning.brake import BrakedProvider
from proxy_operator.provisioning.credentials import SecretReader
from proxy_operator.provisioning.errors import FencedError, ProviderError
from proxy_operator.provisioning.fence import FencedProvider
from proxy_operator.provisioning.timed import TimedProvider
from proxy_operator.runtime.controller import Controller
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.source import enqueue_mapped, enqueue_own
from proxy_operator.runtime.workqueue import WorkQueue
from proxy_operator.runtime.write_through import WriteThrough
from proxy_operator.testing.faults import FaultyClient
from tests.gcp_worlds import a_provider
from tests.simulation.border import GatedSession, Leadership, LifeGate
from tests.simulation.watching import SweptProvider, WatchedMutations
from tests.worlds import FINGERPRINTS, EventNotes, OneRegistry, SweepNotes, Verdicts

if TYPE_CHECKING:
    from proxy_operator.provisioning.contract import Provider
    from tests.simulation.world import Cluster

PROVIDER_CALL = timedelta(seconds=30)
"""As the composition root bounds every call of a provider."""


class Process:
    """Begins with an empty memory; ends when its gate is cut."""

    def __init__(self, cluster: "Cluster") -> None:
        clock = cluster.clock
        self.fence = Leadership()
        self.gate = LifeGate(cluster.line)
        self.superseded = asyncio.Event()
        """Set when the next process may begin."""
        client = FaultyClient(cluster.store, self.gate)
        self._proxies = Informer(client, Proxy, clock=clock, indexers={REFERENCE_INDEX: secrets_of})
        self._secrets = Informer(client, Secret, clock=clock)
        session = GatedSession(cluster.session, self.gate, cluster.watch_of(self))
        bare = WatchedMutations(a_provider(session, cluster.cluster_id, clock), cluster, self)
        provider: Provider = FencedProvider(bare, self.fence)
        if cluster.limits.is_any:
            provider = BrakedProvider(provider, cluster.limits, clock)
        provider = TimedProvider(provider, PROVIDER_CALL)
        ports = Ports(
            proxies=self._proxies.store,
            secrets=SecretReader(self._secrets.store, self._secrets.store),
            client=WriteThrough(client, {Proxy: self._proxies, Secret: self._secrets}),
            providers=OneRegistry(provider),
            health=Verdicts(),
            events=EventNotes(),
            fingerprints=FINGERPRINTS,
        )
        around = Surroundings(ports, clock, cluster.cluster_id, Intervals())
        self._proxies.store.add_handler(around.made_with.handle)
        self._queue = WorkQueue("proxy", clock)
        self._controller = Controller(
            ProxyReconciler(around), self._queue, clock=clock, expected=(ProviderError,)
        )
        self._sweeper = OrphanSweeper(
            client,
            OneRegistry(SweptProvider(provider, cluster)),
            EventNotes(),
            clock,
            SweepNotes(),
            SweepSettings(cluster_id=cluster.cluster_id),
        )

    async def run(self) -> None:
        """Work until the gate is cut, or what was begun after the end of the term ends it."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(part())
                    for part in (
                        self._proxies.run,
                        self._secrets.run,
                        self._work,
                        self._sweeper.run,
                    )
                ]
                await self.gate.cut.wait()
                for task in tasks:
                    task.cancel()
        except* FencedError:
            self.gate.cut.set()
        self.superseded.set()

    async def _work(self) -> None:
        await self._proxies.wait_for_sync()
        await self._secrets.wait_for_sync()
        enqueue_own(self._proxies.store, self._queue)
        enqueue_mapped(
            self._secrets.store, self._queue, lambda s: proxies_using(self._proxies.store, s)
        )
        await self._controller.run()
