"""What is left when every Proxy is gone: deleted by whoever may, waited for by everybody."""

import asyncio
from datetime import timedelta

import pytest

from proxy_operator.app.session import Searched, delete_leftovers
from proxy_operator.domain.names import owner_labels
from proxy_operator.provisioning.contract import InstanceList
from proxy_operator.provisioning.errors import TransientProviderError
from tests.worlds import CLUSTER, World, a_world

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)


class Said:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def live(self, text: str) -> None:
        pass


def plant(world: World) -> None:
    labels = owner_labels(uid="uid-1", cluster_id=CLUSTER, spec_hash="0" * 32)
    world.provider.plant("proxy-abcdefghijklmnop", labels, age=timedelta(0))


async def test_what_nobody_owns_is_deleted_however_young():
    world, said = await a_world(), Said()
    plant(world)
    world.provider.fail("list_by_tag", TransientProviderError("no answer"), times=2)
    searched = await delete_leftovers(world.registry, said, lambda: True)
    assert not world.provider.instances
    assert searched == Searched(["fake"], [])
    # Once, though it came twice.
    assert said.lines == ["instances of fake cannot be deleted yet: no answer"]


async def test_what_cannot_be_looked_for_is_said():
    world, said = await a_world(), Said()
    world.registry.missing = "provider fake needs its extra"
    searched = await delete_leftovers(world.registry, said, lambda: True)
    assert searched == Searched([], ["fake"])
    assert said.lines == ["instances of fake cannot be looked for: provider fake needs its extra"]


async def test_only_who_may_deletes():
    world, said = await a_world(), Said()
    plant(world)
    may = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(delete_leftovers(world.registry, said, may.is_set))
        await asyncio.sleep(60)
        assert world.provider.instances
        assert not waiting.done()
        may.set()
    assert not world.provider.instances


async def test_an_incomplete_list_proves_nothing(monkeypatch):
    world, said = await a_world(), Said()
    answers = [InstanceList((), complete=False)] * 3

    async def list_by_tag() -> InstanceList:
        return answers.pop() if answers else InstanceList((), complete=True)

    monkeypatch.setattr(world.provider, "list_by_tag", list_by_tag)
    await delete_leftovers(world.registry, said, lambda: True)
    assert answers == []
    assert said.lines == ["some instances of fake cannot be read yet"]
