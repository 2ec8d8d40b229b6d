"""The sweep kills what is proven to be an orphan, and nothing else."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.controllers.orphan_gc.sweeper import OrphanSweeper, SweepSettings
from proxy_operator.controllers.ports import SweepResult
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.names import instance_name, owner_labels
from proxy_operator.domain.proxy import GcpBlock, ProviderName
from proxy_operator.provisioning.errors import FencedError, TransientProviderError
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_proxy
from tests.worlds import CLUSTER, OneRegistry, World, a_running_world, a_world, sleep

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

HOUR = timedelta(hours=1)
OLD = timedelta(minutes=11)


def a_sweeper(world: World, **settings) -> OrphanSweeper:
    return OrphanSweeper(
        world.objects,
        world.registry,
        world.events,
        world.clock,
        world.sweeps,
        SweepSettings(CLUSTER, **settings),
    )


def plant(world: World, uid: str, *, cluster: str = CLUSTER, age: timedelta = OLD, **fields):
    labels = owner_labels(uid=uid, cluster_id=cluster, spec_hash="0" * 32)
    return world.provider.plant(instance_name(uid), labels, age=age, **fields)


async def test_only_an_old_orphan_of_ours_is_deleted():
    world = await a_running_world(a_proxy())
    await sleep(HOUR)
    [alive] = world.provider.instances
    orphan = plant(world, "uid-1")
    young = plant(world, "uid-2", age=timedelta(seconds=30))
    foreign = plant(world, "uid-3", cluster="other")
    unlabelled = world.provider.plant("somebody", {}, age=OLD)
    assert await a_sweeper(world).sweep() == 1
    assert {*world.provider.instances} == {alive, young, foreign, unlabelled}
    assert (world.sweeps.deleted, world.sweeps.left) == (1, [0])
    [(_, _, message)] = [t for t in world.events.told if t[1] == "OrphanDeleted"]
    assert orphan in message


async def test_two_operators_in_one_project_leave_each_other_alone():
    mine, other = await a_running_world(a_proxy()), await a_world()
    other.provider = FakeProvider(mine.clock, cluster_id="cluster-2", world=mine.provider.world)
    other.registry = OneRegistry(other.provider)
    await sleep(HOUR)
    sweeper = OrphanSweeper(
        other.objects,
        other.registry,
        other.events,
        other.clock,
        other.sweeps,
        SweepSettings("cluster-2"),
    )
    assert await sweeper.sweep() == 0
    assert await a_sweeper(mine).sweep() == 0
    assert len(mine.provider.instances) == 1


async def test_an_instance_of_a_deleting_proxy_is_left_to_its_finalizer():
    world = await a_running_world(a_proxy())
    world.provider.fail("delete", TransientProviderError("no answer"), times=None)
    await world.delete()
    await world.run(HOUR)
    world.provider.heal()
    assert await a_sweeper(world).sweep() == 0


async def test_a_second_instance_of_a_live_proxy_is_deleted():
    world = await a_running_world(
        a_proxy(provider=ProviderName.GCP, gcp=GcpBlock(zone="a", fallback_zones=("b",)))
    )
    uid = (await world.proxy()).metadata.uid
    await sleep(HOUR)
    [alive] = world.provider.instances
    plant(world, uid, zone="b")
    assert await a_sweeper(world).sweep() == 1
    assert [*world.provider.instances] == [alive]


async def test_what_an_unfinished_create_points_at_is_not_an_orphan():
    world = await a_world(a_proxy())
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await sleep(HOUR)
    assert await a_sweeper(world).sweep() == 0


async def test_an_orphan_that_is_going_already_is_not_deleted_again():
    world = await a_world()
    plant(world, "uid-1", state=InstanceState.TERMINATING)
    assert await a_sweeper(world).sweep() == 0
    assert world.provider.calls["delete"] == 0


async def test_an_unreadable_proxy_list_skips_the_sweep(monkeypatch):
    world = await a_world()
    plant(world, "uid-1")

    async def blind(*_: Any, **__: Any) -> Any:
        raise UnavailableError("the store is away")

    monkeypatch.setattr(world.objects, "list", blind)
    sweeper = OrphanSweeper(
        world.objects,
        world.registry,
        world.events,
        world.clock,
        world.sweeps,
        SweepSettings(CLUSTER),
    )
    assert await sweeper.sweep() == 0
    assert len(world.provider.instances) == 1
    assert world.sweeps.results() == [SweepResult.FAILED]
    assert world.sweeps.left == []


async def test_an_unreadable_provider_is_skipped():
    world = await a_world()
    plant(world, "uid-1")
    world.provider.fail("list_by_tag", TransientProviderError("no answer"))
    assert await a_sweeper(world).sweep() == 0
    await sleep(HOUR)
    assert await a_sweeper(world).sweep() == 1
    assert world.sweeps.sweeps == [
        ("fake", SweepResult.FAILED, world.clock.now() - HOUR),
        ("fake", SweepResult.SUCCESS, world.clock.now()),
    ]


async def test_a_provider_that_lacks_something_is_a_failed_sweep_and_not_a_silent_one():
    world = await a_world()
    world.registry.missing = "its extra is not installed"
    task = asyncio.get_running_loop().create_task(a_sweeper(world).run())
    await sleep(timedelta(minutes=11))
    assert world.sweeps.begun == ["fake"]
    assert world.sweeps.results() == [SweepResult.FAILED]
    task.cancel()


async def test_an_incomplete_list_still_proves_what_it_shows():
    world = await a_world()
    plant(world, "uid-1", zone="a")
    hidden = plant(world, "uid-2", zone="b")
    world.provider.is_list_complete = False
    world.provider.hidden_zones = {"b"}
    assert await a_sweeper(world).sweep() == 1
    assert [*world.provider.instances] == [hidden]
    assert world.sweeps.results() == [SweepResult.INCOMPLETE]


async def test_a_dry_run_only_says():
    world = await a_world()
    plant(world, "uid-1")
    assert await a_sweeper(world, is_dry_run=True).sweep() == 0
    assert len(world.provider.instances) == 1
    assert (world.sweeps.deleted, world.sweeps.left) == (0, [1])
    assert world.sweeps.results() == [SweepResult.SUCCESS]


async def test_an_orphan_whose_deletion_is_refused_is_counted_as_left_until_it_goes():
    world = await a_world()
    plant(world, "uid-1")
    plant(world, "uid-2")
    world.provider.fail("delete", TransientProviderError("no answer"))
    assert await a_sweeper(world).sweep() == 1
    assert (world.sweeps.deleted, world.sweeps.left) == (1, [1])
    assert await a_sweeper(world).sweep() == 1
    assert (world.sweeps.deleted, world.sweeps.left) == (2, [1, 0])


async def test_a_provider_is_known_to_the_recorder_before_the_first_sweep():
    world = await a_world()
    task = asyncio.get_running_loop().create_task(a_sweeper(world).run())
    await sleep(timedelta(minutes=9))
    assert (world.sweeps.begun, world.sweeps.sweeps) == (["fake"], [])
    await sleep(timedelta(minutes=2))
    assert world.sweeps.results() == [SweepResult.SUCCESS]
    task.cancel()


async def test_a_sweep_that_may_no_longer_delete_is_no_success():
    world = await a_world()
    plant(world, "uid-1")
    world.provider.fail("delete", FencedError("the term is over"))
    with pytest.raises(FencedError):
        await a_sweeper(world).sweep()
    assert (world.sweeps.deleted, world.sweeps.sweeps) == (0, [])


async def test_instances_are_listed_before_proxies(monkeypatch):
    """A proxy made between the two lists, with its instance, must not look like an orphan's."""
    world = await a_world()
    order = []
    for owner, verb in ((world.objects, "list"), (world.provider, "list_by_tag")):
        inner = getattr(owner, verb)

        async def noted(*args: Any, verb: str = verb, inner: Any = inner, **kwargs: Any) -> Any:
            order.append(verb)
            return await inner(*args, **kwargs)

        monkeypatch.setattr(owner, verb, noted)
    plant(world, "uid-1")
    await a_sweeper(world).sweep()
    assert order == ["list_by_tag", "list"]


async def test_the_first_sweep_comes_a_full_interval_after_the_start():
    world = await a_world()
    plant(world, "uid-1")
    task = asyncio.get_running_loop().create_task(a_sweeper(world).run())
    await sleep(timedelta(minutes=9))
    assert len(world.provider.instances) == 1
    await sleep(timedelta(minutes=2))
    assert world.provider.instances == {}
    # Somebody makes the same again, as a cloud that restarts spot instances does.
    plant(world, "uid-1")
    await sleep(timedelta(minutes=10))
    assert world.provider.instances == {}
    task.cancel()


class Unreadable:
    """A reader to which the Proxies of some uids are there, but cannot be read."""

    def __init__(self, world: World, *uids: str) -> None:
        self._world = world
        self._uids = uids

    async def get(self, kind: Any, key: Any) -> Any:
        raise NotImplementedError

    async def list(self, kind: Any, **scope: Any) -> Any:
        listing = await self._world.objects.list(kind, **scope)
        return listing._replace(unreadable=self._uids)


async def test_an_instance_of_a_proxy_that_cannot_be_read_is_no_orphan():
    world = await a_world()
    kept, orphan = plant(world, "uid-1"), plant(world, "uid-2")
    sweeper = OrphanSweeper(
        Unreadable(world, "uid-1"),
        world.registry,
        world.events,
        world.clock,
        world.sweeps,
        SweepSettings(CLUSTER),
    )
    assert await sweeper.sweep() == 1
    assert {*world.provider.instances} == {kept}
    assert orphan != kept


async def test_a_sweep_in_one_namespace_asks_for_no_other():
    world = await a_world()
    asked: list[Any] = []

    class Listening(Unreadable):
        async def list(self, kind: Any, **scope: Any) -> Any:
            asked.append(scope.get("namespace"))
            return await super().list(kind, **scope)

    plant(world, "uid-1")
    sweeper = OrphanSweeper(
        Listening(world),
        world.registry,
        world.events,
        world.clock,
        world.sweeps,
        SweepSettings(CLUSTER, namespace="crawl"),
    )
    assert await sweeper.sweep() == 1
    assert asked == ["crawl"]
