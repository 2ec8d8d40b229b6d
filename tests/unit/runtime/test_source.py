import asyncio

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import ObjectKey, key_of
from proxy_operator.runtime.source import Channel, enqueue_mapped, enqueue_own
from proxy_operator.runtime.store import Store
from tests.unit.runtime.script import an_object


def key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


class Keys:
    def __init__(self) -> None:
        self.taken: list[str] = []

    def add(self, key: ObjectKey) -> None:
        self.taken.append(key.name)


def test_own_objects_wake_their_key_on_every_change_but_an_echo():
    store = Store[Proxy]()
    keys = Keys()
    store.put(an_object("known"))
    enqueue_own(store, keys)
    store.put(an_object("a", 1))
    store.put(an_object("a", 2), is_echo=True)
    store.put(an_object("a", 3))
    store.remove(key("a"))
    assert keys.taken == ["known", "a", "a", "a"]


def test_mapped_objects_wake_the_keys_of_both_their_states_once():
    store = Store[Proxy]()
    keys = Keys()
    enqueue_mapped(
        store, keys, lambda obj: [key(name) for name in obj.metadata.labels.get("for", "").split()]
    )
    store.put(an_object("s", 1, labels={"for": "a b"}))
    assert keys.taken == ["a", "b"]
    store.put(an_object("s", 2, labels={"for": "b c"}))
    assert keys.taken[2:] == ["a", "b", "c"]
    store.remove(key("s"))
    assert keys.taken[5:] == ["b", "c"]


@pytest.mark.looptime(start=0)
async def test_channel_passes_offers_on_while_it_runs():
    keys = Keys()
    channel = Channel("health", keys)
    assert channel.offer(key("before"))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(channel.run())
        await asyncio.sleep(1)
        assert keys.taken == ["before"]
        assert channel.offer(key("a"))
        assert channel.offer(key("b"))
        assert channel.offer(key("a"))
        await asyncio.sleep(1)
        running.cancel()
    assert keys.taken == ["before", "a", "b"]


async def test_full_channel_refuses_new_keys_and_loses_none():
    keys = Keys()
    channel = Channel("health", keys, capacity=2)
    assert [channel.offer(key(name)) for name in "abca"] == [True, True, False, True]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.run(), 0)
    assert channel.offer(key("c")) is False


def test_key_of_an_object_prints_as_people_write_it():
    assert str(key_of(an_object("a"))) == "default/a"
