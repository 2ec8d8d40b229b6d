"""The informer against a server of its own: others write, we write, news is late or lost."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any, TypeVar

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.errors import ExpiredError, UnavailableError
from proxy_operator.runtime.informer import Informer
from proxy_operator.runtime.objects import (
    ObjectKey,
    ObjectList,
    WatchEvent,
    WatchEventType,
    key_of,
)
from proxy_operator.runtime.store import StoreEvent
from tests.builders import EPOCH, a_proxy

T = TypeVar("T")

NAMES = st.sampled_from(["a", "b", "c"])
State = tuple[str, int]
"""uid and version."""


class Server:
    """Keeps objects and history. A list shows the moment it was asked for, however late it comes;
    a watch moves on only when it is let."""

    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[str, Proxy] = {}
        self.history: list[WatchEvent[Any]] = []
        self.forgotten = 0
        self.is_holding_lists = False
        self.released = asyncio.Event()
        self.allowed = 0
        self.moved = asyncio.Event()
        self.failure: Exception | None = None

    def write(self, name: str, *, is_successor: bool = False) -> Proxy:
        self.version += 1
        old = self.objects.get(name)
        uid = old.metadata.uid if old and not is_successor else f"{name}-{self.version}"
        obj = a_proxy(name, meta={"uid": uid, "resource_version": str(self.version)})
        kind = WatchEventType.MODIFIED if old and not is_successor else WatchEventType.ADDED
        self.objects[name] = obj
        self.history.append(WatchEvent(kind, obj, str(self.version)))
        return obj

    def remove(self, name: str) -> Proxy:
        self.version += 1
        obj = self.objects.pop(name)
        self.history.append(WatchEvent(WatchEventType.DELETED, obj, str(self.version)))
        return obj

    async def get(self, kind: type[Any], key: ObjectKey) -> Any:
        raise NotImplementedError

    async def list(self, kind: type[Any], **_: Any) -> ObjectList[Any]:
        listing = ObjectList([*self.objects.values()], str(self.version))
        if self.is_holding_lists:
            await self.released.wait()
        return listing

    async def watch(
        self, kind: type[Any], resource_version: str, **_: Any
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        reached = int(resource_version)
        if reached < self.forgotten:
            raise ExpiredError("too old")
        while True:
            if self.failure is not None:
                failure, self.failure = self.failure, None
                raise failure
            event = next((e for e in self.history if int(e.resource_version) > reached), None)
            if event is None or not self.allowed:
                self.moved.clear()
                await self.moved.wait()
                continue
            self.allowed -= 1
            reached = int(event.resource_version)
            yield event

    def let(self, events: int) -> None:
        self.allowed += events
        self.moved.set()

    def fail(self, failure: Exception) -> None:
        self.failure = failure
        self.moved.set()


class InformerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)
        self.server = Server()
        self.informer = Informer(self.server, Proxy, clock=LoopClock(EPOCH))
        self.told: dict[str, State] = {}
        self.informer.store.add_handler(self.follow)
        self.replies: list[tuple[str, Proxy]] = []  # of own writes, still under way
        self.floor: dict[str, int] = {}  # newest own write observed, by uid
        self.gone: set[str] = set()  # uids that an own write has seen removed
        self.running = self.loop.create_task(self.informer.run())
        self.turn()

    def teardown(self) -> None:
        self.running.cancel()
        self.run(_ended(self.running))
        self.loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def turn(self, seconds: float = 0.0) -> None:
        self.run(_pass_time(seconds))
        assert not self.running.done()

    def follow(self, event: StoreEvent[Proxy]) -> None:
        """Handlers can follow: every change starts from what they were told last."""
        obj = event.new or event.old
        assert obj is not None
        name = obj.metadata.name
        assert _state(event.old) == self.told.pop(name, None)
        assert _state(event.old) != _state(event.new)
        if event.old is not None and event.new is not None:
            assert event.old.metadata.uid == event.new.metadata.uid
        if (state := _state(event.new)) is not None:
            self.told[name] = state

    @rule(name=NAMES)
    def somebody_writes(self, name: str) -> None:
        self.server.write(name)

    @rule(name=NAMES)
    def somebody_replaces(self, name: str) -> None:
        if name in self.server.objects:
            self.server.remove(name)
        self.server.write(name, is_successor=True)

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def somebody_removes(self, data: st.DataObject) -> None:
        self.server.remove(data.draw(st.sampled_from(sorted(self.server.objects))))

    @rule(name=NAMES)
    def we_write(self, name: str) -> None:
        self.replies.append(("write", self.server.write(name)))

    @precondition(lambda self: self.server.objects)
    @rule(data=st.data())
    def we_remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.server.objects)))
        self.replies.append(("remove", self.server.remove(name)))

    @precondition(lambda self: self.replies)
    @rule(data=st.data())
    def a_reply_comes(self, data: st.DataObject) -> None:
        reply = data.draw(st.sampled_from(self.replies))
        self.replies.remove(reply)
        verb, obj = reply
        uid = obj.metadata.uid
        if verb == "remove":
            self.gone.add(uid)
            self.informer.observe_deleted(key_of(obj), uid)
        else:
            version = int(obj.metadata.resource_version)
            self.floor[uid] = max(version, self.floor.get(uid, 0))
            self.informer.observe(obj)

    @rule(count=st.integers(min_value=1, max_value=5))
    def the_watch_moves_on(self, count: int) -> None:
        self.server.let(count)
        self.turn()

    @rule()
    def the_watch_breaks(self) -> None:
        self.server.fail(UnavailableError("broken"))
        self.turn(60)

    @rule()
    def history_is_forgotten(self) -> None:
        self.server.forgotten = self.server.version
        self.server.fail(ExpiredError("too old"))
        self.turn(60)

    @rule()
    def lists_take_their_time(self) -> None:
        self.server.is_holding_lists = True
        self.server.released.clear()

    @rule()
    def lists_come(self) -> None:
        self.server.is_holding_lists = False
        self.server.released.set()
        self.turn(60)

    @rule()
    def all_is_calm(self) -> None:
        """In the end the store is what the server has."""
        while self.replies:
            verb, obj = self.replies.pop(0)
            if verb == "write":
                self.informer.observe(obj)
            else:
                self.informer.observe_deleted(key_of(obj), obj.metadata.uid)
        self.lists_come()
        self.server.let(len(self.server.history))
        self.turn(60)
        self.server.allowed = 0
        assert self.told == {name: _state(obj) for name, obj in self.server.objects.items()}

    @invariant()
    def store_never_falls_behind_own_writes(self) -> None:
        assert self.told == {o.metadata.name: _state(o) for o in self.informer.store.list()}
        for uid, version in self.told.values():
            assert version >= self.floor.get(uid, 0)
            assert uid not in self.gone


def _state(obj: Proxy | None) -> State | None:
    return None if obj is None else (obj.metadata.uid, int(obj.metadata.resource_version))


async def _pass_time(seconds: float) -> None:
    await asyncio.sleep(seconds)
    for _ in range(20):
        await asyncio.sleep(0)


async def _ended(task: asyncio.Task[None]) -> None:
    await asyncio.wait([task])


InformerMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
TestInformer = InformerMachine.TestCase
