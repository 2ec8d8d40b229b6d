"""The queue against a model of four lines: what waits, what is in flight, what comes when."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar

import looptime
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ratelimit import ExponentialBackoff
from proxy_operator.runtime.workqueue import ShutDownError, WorkQueue
from tests.builders import EPOCH

T = TypeVar("T")

KEYS = st.sampled_from([ObjectKey("default", name) for name in "abcd"])
TICKS = st.integers(min_value=0, max_value=8)
"""Times are whole seconds, so that model and queue agree on what is due."""


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)
        self.queue = WorkQueue(
            "q",
            LoopClock(EPOCH),
            ExponentialBackoff(base=timedelta(seconds=1), cap=timedelta(seconds=4)),
        )
        self.now = 0
        self.waiting: list[ObjectKey] = []  # in the order they may be handed out, unless in flight
        self.in_flight: list[ObjectKey] = []
        self.delayed: dict[ObjectKey, int] = {}
        self.failures: dict[ObjectKey, int] = {}
        self.getters: list[asyncio.Task[ObjectKey]] = []  # tasks that wait for a key, oldest first

    def teardown(self) -> None:
        try:
            self.run(self.shut_down())
        finally:
            self.loop.close()

    async def shut_down(self) -> None:
        """Whatever the state: workers end, passes may finish, nothing is handed out or taken in."""
        drained = self.loop.create_task(self.queue.drain(timedelta(seconds=5)))
        ended = await asyncio.gather(*self.getters, return_exceptions=True)
        assert all(isinstance(error, ShutDownError) for error in ended)
        for key in self.in_flight:
            assert not drained.done()
            self.queue.done(key)
        assert await drained
        self.queue.add(ObjectKey("default", "a"))
        assert self.queue.depth() == 0
        with pytest.raises(ShutDownError):
            await self.queue.get()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(coroutine)

    def settle(self) -> None:
        """Let the loop turn, and let the model hand keys to the waiting workers."""
        self.run(_turn())
        for getter in [*self.getters]:
            free = self.free()
            if not free:
                assert not getter.done()
                break
            self.getters.remove(getter)
            self.hand_out(getter.result(), free[0])
        assert not any(getter.done() for getter in self.getters)

    def free(self) -> list[ObjectKey]:
        return [key for key in self.waiting if key not in self.in_flight]

    def hand_out(self, key: ObjectKey, expected: ObjectKey) -> None:
        assert key == expected
        self.waiting.remove(key)
        self.in_flight.append(key)

    def model_add(self, key: ObjectKey) -> None:
        if key not in self.waiting:
            self.waiting.append(key)

    def model_add_after(self, key: ObjectKey, delay: int) -> None:
        if delay == 0:
            self.model_add(key)
        else:
            due = self.now + delay
            self.delayed[key] = min(due, self.delayed.get(key, due))

    @rule(key=KEYS)
    def add(self, key: ObjectKey) -> None:
        self.run(_call(self.queue.add, key))
        self.model_add(key)
        self.settle()

    @rule(key=KEYS, delay=TICKS)
    def add_after(self, key: ObjectKey, delay: int) -> None:
        self.run(_call(self.queue.add_after, key, timedelta(seconds=delay)))
        self.model_add_after(key, delay)
        self.settle()

    @rule(key=KEYS)
    def add_rate_limited(self, key: ObjectKey) -> None:
        self.run(_call(self.queue.add_rate_limited, key))
        failures = self.failures.get(key, 0)
        self.failures[key] = failures + 1
        self.model_add_after(key, min(4, 2**failures))
        self.settle()

    @rule(key=KEYS)
    def forget(self, key: ObjectKey) -> None:
        self.queue.forget(key)
        self.failures.pop(key, None)

    @precondition(lambda self: len(self.getters) < 3)
    @rule()
    def get(self) -> None:
        self.getters.append(self.loop.create_task(self.queue.get()))
        self.settle()

    @precondition(lambda self: self.getters)
    @rule(data=st.data())
    def cancel_a_getter(self, data: st.DataObject) -> None:
        getter = data.draw(st.sampled_from(self.getters))
        self.getters.remove(getter)
        getter.cancel()
        self.settle()

    @precondition(lambda self: self.getters)
    @rule(key=KEYS)
    def cancel_the_getter_that_a_key_just_woke(self, key: ObjectKey) -> None:
        getter = self.getters.pop(0)
        self.run(_call(self.queue.add, key))
        getter.cancel()
        self.model_add(key)
        self.run(_turn())
        if getter.done() and not getter.cancelled():
            self.hand_out(getter.result(), self.free()[0])
        self.settle()

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self.in_flight))
        self.run(_call(self.queue.done, key))
        self.in_flight.remove(key)
        if key in self.waiting:
            self.waiting.remove(key)
            self.waiting.append(key)
        self.settle()

    @rule(ticks=TICKS)
    def advance(self, ticks: int) -> None:
        for _ in range(ticks):
            self.run(_sleep(1))
            self.now += 1
            for key in sorted(k for k, due in self.delayed.items() if due <= self.now):
                del self.delayed[key]
                self.model_add(key)
            self.settle()

    @invariant()
    def gauges_agree(self) -> None:
        assert self.queue.depth() == len(self.waiting)
        for key in [ObjectKey("default", name) for name in "abcd"]:
            assert self.queue.num_requeues(key) == self.failures.get(key, 0)

    @precondition(lambda self: not self.in_flight and not self.getters)
    @rule()
    def everything_asked_for_comes_in_the_end(self) -> None:
        self.advance(8)
        while self.waiting:
            self.hand_out(self.run(self.queue.get()), self.free()[0])
        assert self.queue.depth() == 0


async def _call(function: Callable[..., None], *arguments: Any) -> None:
    function(*arguments)


async def _turn() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


async def _sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


QueueMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestQueue = QueueMachine.TestCase
