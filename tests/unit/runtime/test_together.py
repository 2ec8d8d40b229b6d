"""All of the machinery around one reconciler, as an operator composes it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from proxy_operator.domain.proxy import Endpoint, Mode, Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.controller import Controller
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.manager import Manager
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions, key_of
from proxy_operator.runtime.reconciler import Result
from proxy_operator.runtime.source import enqueue_own
from proxy_operator.runtime.workqueue import WorkQueue
from proxy_operator.runtime.write_through import WriteThrough
from proxy_operator.testing.fake_objects import FakeObjectClient
from tests.builders import EPOCH, an_external

pytestmark = pytest.mark.looptime(start=0)

FINALIZER = "crawl.example.com/instance"


class Reconciler:
    """Adds a finalizer, copies the host into the status, and lets a deleting object go."""

    def __init__(self, client: WriteThrough, informer: Informer[Proxy]) -> None:
        self.client = client
        self.informer = informer
        self.passes: list[str] = []

    async def reconcile(self, key: ObjectKey) -> Result:
        proxy = self.informer.store.get(key)
        self.passes.append(key.name)
        if proxy is None:
            return Result()
        meta = proxy.metadata
        preconditions = Preconditions(meta.uid, meta.resource_version)
        if meta.is_deleting:
            patch = MetadataPatch(finalizers=[])
            await self.client.patch_metadata(Proxy, key, preconditions, patch)
            return Result()
        if not meta.finalizers:
            patch = MetadataPatch(finalizers=[FINALIZER])
            proxy = await self.client.patch_metadata(Proxy, key, preconditions, patch)
        assert proxy.spec.endpoint is not None
        if proxy.status.ip != proxy.spec.endpoint.host:
            status = msgspec.structs.replace(proxy.status, ip=proxy.spec.endpoint.host)
            await self.client.patch_status(msgspec.structs.replace(proxy, status=status))
        return Result()


class Operator:
    def __init__(self, objects: FakeObjectClient) -> None:
        clock = LoopClock(EPOCH)
        self.informer = Informer(objects, Proxy, clock=clock)
        self.client = WriteThrough(objects, {Proxy: self.informer})
        self.queue = WorkQueue("proxy", clock)
        self.reconciler = Reconciler(self.client, self.informer)
        enqueue_own(self.informer.store, self.queue)
        self.manager = Manager(clock)
        self.manager.add_cache(self.informer)
        self.manager.add(Controller(self.reconciler, self.queue, clock=clock), elected=True)


@asynccontextmanager
async def operating(objects: FakeObjectClient) -> AsyncIterator[Operator]:
    operator = Operator(objects)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(operator.manager.run())
        await asyncio.sleep(1)
        yield operator
        operator.manager.request_stop()
        await run


async def test_objects_converge_without_a_pass_for_the_operators_own_writes():
    objects = FakeObjectClient(LoopClock(EPOCH))
    for number in range(20):
        await objects.create(an_external(f"p{number}", host=f"192.0.2.{number}"))
    async with operating(objects) as operator:
        stored = (await objects.list(Proxy)).items
        assert all(p.spec.endpoint and p.status.ip == p.spec.endpoint.host for p in stored)
        assert len(operator.reconciler.passes) == 20
        await asyncio.sleep(3600)
        assert len(operator.reconciler.passes) == 20


async def test_restart_of_a_settled_fleet_writes_nothing():
    objects = FakeObjectClient(LoopClock(EPOCH))
    await objects.create(an_external("a"))
    async with operating(objects):
        pass
    version = (await objects.list(Proxy)).resource_version
    async with operating(objects) as operator:
        assert operator.reconciler.passes == ["a"]
    assert (await objects.list(Proxy)).resource_version == version


async def test_edits_and_deletions_by_others_are_acted_on():
    objects = FakeObjectClient(LoopClock(EPOCH))
    made = await objects.create(an_external("a", host="192.0.2.1"))
    async with operating(objects) as operator:
        await objects.apply(
            {
                "apiVersion": "crawl.example.com/v1alpha1",
                "kind": "Proxy",
                "metadata": {"name": "a", "namespace": "default"},
                "spec": {
                    "mode": Mode.EXTERNAL.value,
                    "endpoint": msgspec.to_builtins(Endpoint(host="192.0.2.9", port=3128)),
                },
            }
        )
        await asyncio.sleep(1)
        assert (await objects.get(Proxy, key_of(made))).status.ip == "192.0.2.9"
        await objects.delete(Proxy, key_of(made))
        await asyncio.sleep(1)
        assert (await objects.list(Proxy)).items == []
        assert operator.informer.store.list() == []
