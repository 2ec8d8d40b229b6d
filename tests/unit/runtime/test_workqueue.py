import asyncio
from datetime import timedelta
from typing import Any

import pytest

from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import QueueGauges, Unrecorded
from proxy_operator.runtime.workqueue import ShutDownError, WorkQueue
from tests.builders import EPOCH

pytestmark = pytest.mark.looptime(start=0)

A = ObjectKey("default", "a")
B = ObjectKey("default", "b")


def a_queue(**arguments: Any) -> WorkQueue:
    return WorkQueue("q", LoopClock(EPOCH), **arguments)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def now() -> float:
    return asyncio.get_running_loop().time()


async def next_key(queue: WorkQueue) -> tuple[ObjectKey, Any]:
    """The next key, done at once, and the moment it came."""
    key = await queue.get()
    queue.done(key)
    return key, pytest.approx(now())


async def is_empty(queue: WorkQueue) -> bool:
    try:
        async with asyncio.timeout(0.001):
            queue.done(await queue.get())
    except TimeoutError:
        return True
    return False


async def test_keys_come_in_order_and_once():
    queue = a_queue()
    for key in (A, B, A):
        queue.add(key)
    assert queue.depth() == 2
    assert [await queue.get(), await queue.get()] == [A, B]
    assert queue.depth() == 0


async def test_key_added_in_flight_comes_again_after_done_and_not_before():
    queue = a_queue()
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    queue.add(A)
    assert await is_empty(queue)
    queue.done(A)
    assert await queue.get() == A
    queue.done(A)
    assert await is_empty(queue)


async def test_done_without_get_is_refused():
    queue = a_queue()
    queue.add(A)
    with pytest.raises(ValueError, match="default/a is not in flight"):
        queue.done(A)
    assert await queue.get() == A


async def test_delayed_add_comes_at_its_moment():
    queue = a_queue()
    queue.add_after(A, seconds(5))
    assert await next_key(queue) == (A, 5.0)


@pytest.mark.parametrize("delays", [(5, 60), (60, 5), (60, 5, 30)])
async def test_earliest_delayed_add_counts(delays):
    queue = a_queue()
    for delay in delays:
        queue.add_after(A, seconds(delay))
    assert await next_key(queue) == (A, 5.0)
    await asyncio.sleep(120)
    assert await is_empty(queue)


async def test_delayed_adds_of_many_keys_keep_their_order():
    queue = a_queue()
    for delay in (3, 1, 2):
        queue.add_after(ObjectKey("default", str(delay)), seconds(delay))
    assert [await next_key(queue) for _ in range(3)] == [
        (ObjectKey("default", "1"), 1.0),
        (ObjectKey("default", "2"), 2.0),
        (ObjectKey("default", "3"), 3.0),
    ]


async def test_immediate_add_leaves_a_promised_wake_up_in_place():
    queue = a_queue()
    queue.add_after(A, seconds(5))
    queue.add(A)
    assert await next_key(queue) == (A, 0.0)
    assert await next_key(queue) == (A, 5.0)


@pytest.mark.parametrize("delay", [0, -1])
async def test_delay_that_is_over_is_an_immediate_add(delay):
    queue = a_queue()
    queue.add_after(A, seconds(delay))
    assert await next_key(queue) == (A, 0.0)


async def test_wake_up_during_a_pass_waits_for_its_end():
    queue = a_queue()
    queue.add(A)
    await queue.get()
    queue.add_after(A, seconds(1))
    await asyncio.sleep(10)
    assert await is_empty(queue)
    queue.done(A)
    assert await queue.get() == A


async def test_deadlines_that_were_superseded_do_not_pile_up():
    queue = a_queue()
    for delay in range(10_000, 0, -1):
        queue.add_after(A, seconds(delay))
    assert len(queue._heap) <= 70
    assert await next_key(queue) == (A, 1.0)


async def test_failures_of_a_key_back_off_until_forgotten():
    queue = a_queue()
    came = []
    for _ in range(3):
        queue.add_rate_limited(A)
        came.append(await next_key(queue))
    assert came == [(A, 0.005), (A, 0.015), (A, 0.035)]
    assert queue.num_requeues(A) == 3
    queue.forget(A)
    assert queue.num_requeues(A) == 0
    queue.add_rate_limited(A)
    assert await next_key(queue) == (A, 0.04)


async def test_every_waiting_worker_is_woken_by_a_key_of_its_own():
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        for name in "abc":
            queue.add(ObjectKey("default", name))
    assert {worker.result().name for worker in workers} == {"a", "b", "c"}


async def test_cancelling_a_worker_just_woken_hands_its_key_to_another():
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        first, second = (group.create_task(queue.get()) for _ in range(2))
        await asyncio.sleep(1)
        queue.add(A)
        first.cancel()
        async with asyncio.timeout(1):
            assert await second == A


async def test_cancelling_the_only_worker_leaves_the_key():
    queue = a_queue()
    async with asyncio.TaskGroup() as group:
        worker = group.create_task(queue.get())
        await asyncio.sleep(1)
        queue.add(A)
        worker.cancel()
    assert (await next_key(queue))[0] == A


async def test_wait_that_times_out_loses_no_later_key():
    queue = a_queue()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1)
    queue.add(A)
    assert await queue.get() == A


async def test_shut_down_ends_the_workers_and_drops_what_waits():
    queue = a_queue()
    queue.add_after(B, seconds(1))
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(ends(queue)) for _ in range(3)]
        await asyncio.sleep(0.1)
        queue.shut_down()
    assert all(worker.result() for worker in workers)
    queue.add(A)
    queue.add_after(A, seconds(1))
    queue.add_rate_limited(A)
    await asyncio.sleep(5)
    assert queue.depth() == 0
    assert queue.num_requeues(A) == 0
    assert await ends(queue)


async def ends(queue: WorkQueue) -> bool:
    with pytest.raises(ShutDownError):
        await queue.get()
    return True


async def test_no_pass_begins_after_shut_down_even_for_a_ready_key():
    queue = a_queue()
    queue.add(A)
    queue.shut_down()
    assert await ends(queue)


async def test_drain_waits_for_passes_and_drops_what_they_ask_for():
    queue = a_queue()
    queue.add(A)
    await queue.get()
    queue.add(A)
    asyncio.get_running_loop().call_later(3, queue.done, A)
    assert await queue.drain(seconds(10))
    assert now() == pytest.approx(3)
    assert await ends(queue)


async def test_drain_gives_up_at_its_bound():
    queue = a_queue()
    queue.add(A)
    await queue.get()
    assert not await queue.drain(seconds(10))
    assert now() == pytest.approx(10)


async def test_drain_of_an_idle_queue_is_immediate():
    assert await a_queue().drain(seconds(10))
    assert now() == 0


async def test_gauges_follow_the_passes():
    queue = a_queue()
    queue.add(A)
    await queue.get()
    await asyncio.sleep(2)
    queue.add(B)
    await queue.get()
    await asyncio.sleep(3)
    assert queue.unfinished_work() == seconds(8)
    assert queue.longest_running() == seconds(5)
    queue.done(A)
    queue.done(B)
    assert queue.unfinished_work() == queue.longest_running() == seconds(0)


class Tally(Unrecorded):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def opened(self, queue: QueueGauges) -> None:
        self.seen.append(("opened", queue.name))

    def added(self, queue: str) -> None:
        self.seen.append(("added", queue))

    def taken(self, queue: str, waited: timedelta) -> None:
        self.seen.append(("taken", waited.total_seconds()))

    def done(self, queue: str, worked: timedelta) -> None:
        self.seen.append(("done", worked.total_seconds()))

    def retried(self, queue: str) -> None:
        self.seen.append(("retried", queue))


async def test_recorder_learns_how_long_keys_waited_and_worked():
    tally = Tally()
    queue = a_queue(recorder=tally)
    queue.add(A)
    queue.add(A)
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(3)
    queue.done(A)
    queue.add_after(A, seconds(1))
    assert tally.seen == [
        ("opened", "q"),
        ("added", "q"),
        ("taken", 2.0),
        ("done", 3.0),
        ("retried", "q"),
    ]
