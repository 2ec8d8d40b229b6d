"""Operator processes on virtual time: the real queue, informers, controller and reconciler.

A process runs until it is cut; whoever drives the test then starts the next one, with an empty
memory and the same store and cloud.
"""

import asyncio
from datetime import timedelta
from typing import Any

from proxy_operator.controllers.proxy.context import Ports, Surroundings
from proxy_operator.controllers.proxy.reconciler import ProxyReconciler
from proxy_operator.controllers.proxy.watches import REFERENCE_INDEX, proxies_using, secrets_of
from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.names import UID_LABEL
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.provisioning.credentials import SecretReader
from proxy_operator.runtime.controller import Controller
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.source import enqueue_mapped, enqueue_own
from proxy_operator.runtime.workqueue import WorkQueue
from proxy_operator.runtime.write_through import WriteThrough
from proxy_operator.testing.faults import FaultyClient, FaultyProvider, Gate
from tests.worlds import CLUSTER, FINGERPRINTS, OneRegistry, World


class Process:
    """One life of an operator."""

    def __init__(self, world: World, gate: Gate) -> None:
        self.world = world
        self.gate = gate
        client = FaultyClient(world.objects, gate)
        self.proxies = Informer(
            client, Proxy, clock=world.clock, indexers={REFERENCE_INDEX: secrets_of}
        )
        self.secrets = Informer(client, Secret, clock=world.clock)
        ports = Ports(
            proxies=self.proxies.store,
            secrets=SecretReader(self.secrets.store, self.secrets.store),
            client=WriteThrough(client, {Proxy: self.proxies, Secret: self.secrets}),
            providers=OneRegistry(FaultyProvider(world.provider, gate)),
            health=world.health,
            events=world.events,
            fingerprints=FINGERPRINTS,
        )
        self.queue = WorkQueue("proxy", world.clock)
        around = Surroundings(ports, world.clock, CLUSTER, world.intervals)
        self.controller = Controller(ProxyReconciler(around), self.queue, clock=world.clock)

    async def run(self) -> None:
        """Work until cut or cancelled."""
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.proxies.run()),
                group.create_task(self.secrets.run()),
            ]
            tasks.append(group.create_task(self._work()))
            await self.gate.cut.wait()
            for task in tasks:
                task.cancel()

    async def _work(self) -> None:
        await self.proxies.wait_for_sync()
        await self.secrets.wait_for_sync()
        enqueue_own(self.proxies.store, self.queue)
        enqueue_mapped(
            self.secrets.store, self.queue, lambda s: proxies_using(self.proxies.store, s)
        )
        await self.controller.run()


class Lives:
    """One operator after another over the same world."""

    def __init__(self, world: World, plan: Any = None) -> None:
        self.world = world
        self.gates: list[Gate] = [Gate(plan)]

    @property
    def calls(self) -> list[str]:
        """Calls of all lives."""
        return [call for gate in self.gates for call in gate.calls]

    async def run(self) -> None:
        """Let an operator live; when it dies, a second later the next one starts."""
        while True:
            await Process(self.world, self.gates[-1]).run()
            await asyncio.sleep(1)
            self.gates.append(Gate())


async def settle(world: World, plan: Any, span: timedelta) -> Lives:
    """Run operators for so long, then stop."""
    lives = Lives(world, plan)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(lives.run())
        await asyncio.sleep(span.total_seconds())
        task.cancel()
    return lives


async def assert_converged(world: World) -> None:
    """One running instance for each Managed Proxy that is wanted, and no other."""
    proxies = (await world.objects.list(Proxy)).items
    owned: dict[str, list[str]] = {}
    for provider_id, instance in world.provider.instances.items():
        owned.setdefault(instance.labels[UID_LABEL], []).append(provider_id)
        assert instance.state is InstanceState.RUNNING
    wanted = {p.metadata.uid: [p.status.provider_id] for p in proxies if p.is_managed}
    assert owned == wanted
    for proxy in proxies:
        assert not proxy.metadata.is_deleting
        provisioned = proxy.status.conditions[0]
        assert provisioned.status is ConditionStatus.TRUE
        assert provisioned.message == ""
        assert proxy.status.observed_generation == proxy.metadata.generation
