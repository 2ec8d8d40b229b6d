import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from proxy_operator.runtime.election import LockRecord, Timing
from proxy_operator.runtime.leader_election import LeadershipLostError
from proxy_operator.runtime.lock_elector import LockElector, new_identity
from proxy_operator.runtime.term import Term
from tests.builders import EPOCH
from tests.lock_records import Fate, Line, Server
from tests.unit.runtime.test_term import Watch

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

RETRY = 2.0
LONGEST_RETRY = 2.0 * 2.2


def now() -> float:
    return asyncio.get_running_loop().time()


class Skewed:
    """A process whose wall clock is off."""

    def __init__(self, skew: timedelta = timedelta(0)) -> None:
        self.skew = skew

    def now(self) -> datetime:
        return EPOCH + self.skew + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return now()


class Candidate:
    """An elector with all it needs, as a process of its own."""

    def __init__(self, server: Server, identity: str, skew: timedelta = timedelta(0)) -> None:
        self.line = Line(server)
        self.watch = Watch()
        self.slept = 0.0
        self.term = Term(Timing(), self.watch, lambda: now() + self.slept)
        self.said: list[tuple[str, bool]] = []
        self.elector = LockElector(self.line, identity, self.term, Skewed(skew), self)

    def leads(self, name: str, *, is_leading: bool) -> None:
        self.said.append((name, is_leading))

    async def run(self) -> str:
        """Lead until leadership is lost; return why."""
        await self.elector.acquire()
        with pytest.raises(LeadershipLostError) as lost:
            await self.elector.hold()
        return str(lost.value)


@asynccontextmanager
async def running(candidate: Candidate) -> AsyncIterator[asyncio.Task[str]]:
    """A candidate at work; leaving kills it without a word."""
    async with asyncio.timeout(600), asyncio.TaskGroup() as group:
        task = group.create_task(candidate.run())
        yield task
        task.cancel()


async def until(condition: Callable[[], bool], within: float) -> float:
    """Return how long it took."""
    began = now()
    while not condition():
        assert now() - began < within
        await asyncio.sleep(0.05)
    return now() - began


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def test_the_first_one_makes_the_record_and_renews_it_without_reading():
    server = Server()
    candidate = Candidate(server, "a")
    async with running(candidate):
        await asyncio.sleep(9)
    assert candidate.line.calls == ["get", "create", *["update"] * 4]
    assert server.record == LockRecord(
        "a", timedelta(seconds=15), EPOCH, EPOCH + timedelta(seconds=8), 0
    )
    assert candidate.said == [("operator", False), ("operator", True)]
    assert candidate.watch.until == 8 + 15


async def test_a_leader_keeps_others_out_however_far_its_clock_is_off():
    server = Server()
    for skew in (timedelta(hours=-5), timedelta(hours=5)):
        leader, other = Candidate(server, f"a{skew}", skew), Candidate(server, f"b{skew}")
        async with running(leader):
            await asyncio.sleep(20)
            async with running(other):
                for _ in range(1200):
                    await asyncio.sleep(0.1)
                    assert leader.term.is_open
                    assert not other.term.is_open
            await leader.elector.release()


@pytest.mark.parametrize("nudge", [0.0, 0.4, 0.8, 1.2, 1.6, 2.0])
async def test_a_crashed_leader_is_succeeded_within_the_lease_and_a_retry(nudge: float):
    server = Server()
    leader, other = Candidate(server, "a"), Candidate(server, "b")
    async with running(leader):
        await asyncio.sleep(1)
        async with running(other):
            await asyncio.sleep(11 + nudge)
            leader.line.fate = Fate.LOST
            took = await until(lambda: other.term.is_open, 15 + LONGEST_RETRY + 0.1)
            assert took >= 15 - RETRY - 0.1
            assert not leader.term.is_open
    assert server.record is not None
    assert (server.record.holder, server.record.transitions) == ("b", 1)


async def test_a_record_that_nobody_renews_is_taken_as_soon_as_it_expires():
    server = Server()
    server.create(LockRecord("gone", timedelta(seconds=15)))
    candidate = Candidate(server, "a")
    async with running(candidate):
        assert await until(lambda: candidate.term.is_open, 60) == pytest.approx(15, abs=0.1)


async def test_a_clean_stop_lets_the_next_one_in_at_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    server = Server()
    leader, other = Candidate(server, "a"), Candidate(server, "b")
    async with running(leader):
        await asyncio.sleep(1)
    async with running(other):
        await asyncio.sleep(3)
        assert "waiting for the leader lock, held by a" in messages(caplog)
        await leader.elector.release()
        assert not leader.term.is_open
        assert leader.watch.until is None
        assert leader.said[-1] == ("operator", False)
        record = server.record
        assert record is not None
        assert (record.holder, record.duration) == ("", timedelta(seconds=1))
        assert record.transitions == 0
        await until(lambda: other.term.is_open, LONGEST_RETRY + 0.1)
    assert "released the leader lock" in messages(caplog)
    assert server.record is not None
    assert server.record.transitions == 1


async def test_releasing_what_was_never_claimed_asks_nobody():
    server = Server()
    leader, other = Candidate(server, "a"), Candidate(server, "b")
    async with running(leader):
        await asyncio.sleep(1)
        async with running(other):
            await asyncio.sleep(5)
        before = len(other.line.calls)
        await other.elector.release()
        assert len(other.line.calls) == before
        assert leader.term.is_open


async def test_what_a_release_left_is_known_and_so_is_that_there_was_none():
    server = Server()
    leader, other = Candidate(server, "a"), Candidate(server, "b")
    async with running(leader):
        await asyncio.sleep(1)
        async with running(other):
            await asyncio.sleep(5)
    assert leader.elector.released is None
    await other.elector.release()
    assert other.elector.released is None
    await leader.elector.release()
    left = leader.elector.released
    assert left is not None
    assert (left.record, left.origin) == (server.record, server.version)


async def test_a_claim_cut_off_by_the_stop_is_released_too():
    server = Server()
    candidate = Candidate(server, "a")
    candidate.line.back = 1.0
    async with running(candidate):
        await asyncio.sleep(1.5)
        assert server.record is not None
        assert server.record.holder == "a"
        assert not candidate.term.is_open
    await candidate.elector.release()
    assert server.record.holder == ""


async def test_a_renewal_that_arrives_during_the_release_does_not_undo_it():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader):
        await asyncio.sleep(1)
    get = leader.line.get
    late = [replace(server.record, renewed_at=None)] if server.record else []

    async def get_then_renew():
        stored = await get()
        if late:
            server.update(server.version, late.pop())
        return stored

    leader.line.get = get_then_renew  # type: ignore[method-assign]
    await leader.elector.release()
    assert server.record is not None
    assert server.record.holder == ""


async def test_releasing_what_another_one_took_leaves_it_alone():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader):
        await asyncio.sleep(1)
    server.update(server.version, LockRecord("b", transitions=1))
    await leader.elector.release()
    assert server.record is not None
    assert server.record.holder == "b"
    assert leader.elector.released is None


@pytest.mark.parametrize("fate", [Fate.REFUSED, Fate.LOST, Fate.ANSWER_LOST, Fate.ANSWER_BROKEN])
async def test_leadership_ends_when_nothing_was_renewed_for_the_deadline(
    fate: Fate, caplog: pytest.LogCaptureFixture
):
    leader = Candidate(Server(), "a")
    async with running(leader) as task:
        await asyncio.sleep(5)
        leader.line.fate = fate
        assert "operator was lost: not renewed within 10 s" in await task
        assert now() == pytest.approx(4 + 10, abs=0.01)
        assert not leader.term.is_open
        assert leader.said[-1] == ("operator", False)
    assert "lost the leader lock" in messages(caplog)


async def test_an_attempt_that_hangs_leaves_time_for_another_one():
    leader = Candidate(Server(), "a")
    async with running(leader):
        await asyncio.sleep(5)
        leader.line.fate = Fate.LOST
        await asyncio.sleep(1.5)
        leader.line.fate = Fate.ANSWERED
        await asyncio.sleep(20)
        assert leader.term.is_open


@pytest.mark.parametrize("there_and_back", [(1.5, 1.5), (0.0, 3.5), (3.5, 0.0)])
async def test_a_server_far_away_can_be_led_from(there_and_back: tuple[float, float]):
    candidate = Candidate(Server(), "a")
    candidate.line.there, candidate.line.back = there_and_back
    async with running(candidate) as task:
        await until(lambda: candidate.term.is_open, 10)
        await asyncio.sleep(120)
        assert candidate.term.is_open
        assert not task.done()


async def test_an_answer_that_was_lost_costs_one_attempt_only():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader):
        await asyncio.sleep(5)
        leader.line.fate = Fate.ANSWER_BROKEN
        await asyncio.sleep(2)
        leader.line.fate = Fate.ANSWERED
        await asyncio.sleep(2)
        assert leader.line.calls[-3:] == ["update", "get", "update"]
        assert leader.term.remaining() > 8
    assert set(server.holders) == {"a"}


async def test_slow_answers_do_not_lengthen_the_term():
    leader = Candidate(Server(), "a")
    leader.line.back = 1.9
    async with running(leader):
        await until(lambda: leader.term.is_open, 5)
        assert leader.term.remaining() == pytest.approx(10 - 1.9, abs=0.1)
        before = len(leader.line.calls)
        await asyncio.sleep(20)
        assert len(leader.line.calls) - before == pytest.approx(10, abs=1)


async def test_leadership_taken_by_another_one_ends_at_once():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader) as task:
        await asyncio.sleep(5)
        server.update(server.version, LockRecord("thief", timedelta(seconds=15), transitions=1))
        assert "thief holds it" in await task
        assert now() == pytest.approx(6, abs=0.01)
        assert not leader.term.is_open
        assert leader.watch.until == 4 + 15


async def test_a_process_that_slept_past_its_term_stops_leading_when_it_wakes():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader) as task:
        await asyncio.sleep(5)
        calls = len(leader.line.calls)
        leader.slept = 3600
        assert not leader.term.is_open
        assert "suspended" in await task
        assert len(leader.line.calls) == calls


async def test_a_renewal_that_slept_on_its_way_is_no_renewal():
    leader = Candidate(Server(), "a")
    async with running(leader) as task:
        await asyncio.sleep(5)
        leader.line.back = 3
        await asyncio.sleep(2)
        leader.slept = 3600
        assert "not renewed" in await task


async def test_a_deleted_record_is_made_again_by_its_holder_not_taken_by_others():
    for nudge in range(8):
        server = Server()
        leader, other = Candidate(server, "a"), Candidate(server, "b")
        async with running(leader):
            await asyncio.sleep(1)
            async with running(other):
                await asyncio.sleep(10 + nudge / 3)
                server.record = None
                await asyncio.sleep(30)
                assert leader.term.is_open
                assert not other.term.is_open
            assert server.record is not None
            assert server.record.transitions == 0


async def test_a_record_emptied_by_hand_is_taken_again_by_its_leader():
    server = Server()
    leader = Candidate(server, "a")
    async with running(leader):
        await asyncio.sleep(5)
        server.update(server.version, LockRecord(""))
        await asyncio.sleep(5)
        assert leader.term.is_open
    assert server.record is not None
    assert (server.record.holder, server.record.transitions) == ("a", 1)


async def test_an_outage_is_waited_out_and_said_once(caplog: pytest.LogCaptureFixture):
    candidate = Candidate(Server(), "a")
    candidate.line.fate = Fate.REFUSED
    async with running(candidate):
        await asyncio.sleep(120)
        assert len(candidate.line.calls) == pytest.approx(120 / 3.2, rel=0.3)
        assert messages(caplog) == ["the leader lock cannot be claimed: connection refused"]
        candidate.line.fate = Fate.ANSWERED
        await until(lambda: candidate.term.is_open, LONGEST_RETRY + 0.1)


async def test_a_look_that_hangs_is_given_up():
    candidate = Candidate(Server(), "a")
    candidate.line.fate = Fate.LOST
    async with running(candidate):
        await asyncio.sleep(1)
        candidate.line.fate = Fate.ANSWERED
        await until(lambda: candidate.term.is_open, 5 + LONGEST_RETRY + 0.1)


async def test_of_many_candidates_one_wins():
    server = Server()
    candidates = [Candidate(server, str(n)) for n in range(5)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(c.run()) for c in candidates]
        for _ in range(300):
            await asyncio.sleep(0.1)
            assert sum(c.term.is_open for c in candidates) == 1
        for task in tasks:
            task.cancel()


def test_identities_are_never_used_twice():
    assert new_identity() != new_identity()
