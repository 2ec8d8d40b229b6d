"""Whatever a network, a scheduler and a calendar do: never two leaders at the same moment.

Every process has its own loop, and time passes for each of them in turn. A stopped process gets no
turns; a suspended one also loses the time on the clock that its loop and its candidate read.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from proxy_operator.runtime.election import LockRecord, StoredRecord, Timing
from proxy_operator.runtime.errors import ObjectError, UnavailableError
from proxy_operator.runtime.leader_election import LeadershipLostError
from proxy_operator.runtime.lock_elector import LockElector
from proxy_operator.runtime.ports import Unrecorded
from proxy_operator.runtime.term import Term
from tests.builders import EPOCH
from tests.lock_records import Fate, Server
from tests.unit.runtime.test_term import Watch

TICK = 0.5
PROCESSES = 3
SUCCESSION = 15 + 2 * 2.2 + 5 * TICK
"""Seconds: the lease, the longest pause between two looks at it, and what ticks make of it."""


@dataclass
class Request:
    """On its way to the server, and then back."""

    verb: str
    version: int
    record: LockRecord | None
    arrives_at: float
    back: float
    fate: Fate
    answer: asyncio.Future[StoredRecord]


class World:
    """The server and what is on its way to and from it; its time is the true one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.server = Server()
        self.coming: list[Request] = []
        self.going: list[tuple[float, Request, StoredRecord | ObjectError]] = []

    def turn(self) -> None:
        """Carry out what arrives now, and deliver the answers that are due."""
        for request in [r for r in self.coming if r.arrives_at <= self.now]:
            self.coming.remove(request)
            self._serve(request)
        for due in [d for d in self.going if d[0] <= self.now]:
            self.going.remove(due)
            _, request, answer = due
            if request.answer.done() or request.answer.get_loop().is_closed():
                continue
            if isinstance(answer, ObjectError):
                request.answer.set_exception(answer)
            else:
                request.answer.set_result(answer)

    def _serve(self, request: Request) -> None:
        if request.fate is Fate.LOST:
            return
        answer: StoredRecord | ObjectError = UnavailableError("connection refused")
        if request.fate is not Fate.REFUSED:
            try:
                answer = self._done(request)
            except ObjectError as err:
                answer = err
        if request.fate is Fate.ANSWER_BROKEN:
            answer = UnavailableError("connection reset")
        if request.fate is not Fate.ANSWER_LOST:
            self.going.append((self.now + request.back, request, answer))

    def _done(self, request: Request) -> StoredRecord:
        if request.record is None:
            return self.server.get()
        if request.verb == "create":
            return self.server.create(request.record)
        return self.server.update(request.version, request.record)


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock stands until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = 0.0

    def time(self) -> float:
        return self.reading

    def go_on(self, seconds: float) -> None:
        """Let that time pass at once, then do all there is to do."""
        self.reading += seconds
        is_busy = True
        while is_busy:
            self.call_soon(self.stop)
            self.run_forever()
            is_busy = bool(self._ready)  # type: ignore[attr-defined]


class Process:
    """One candidate with clocks, a loop and a network of its own."""

    name = "operator"

    def __init__(self, world: World, identity: str, skew: timedelta) -> None:
        self.world = world
        self.loop = Loop()
        self.skew = skew
        self.there = 0.0
        self.back = 0.0
        self.fate = Fate.ANSWERED
        self.is_paused = False
        self.behind = 0.0
        """Seconds that the loop has still to make up for."""
        self.term = Term(Timing(), Watch(), lambda: world.now)
        self.elector = LockElector(self, identity, self.term, self, Unrecorded())
        self.task = self.loop.create_task(self.run())

    async def run(self) -> None:
        await self.elector.acquire()
        await self.elector.hold()

    def now(self) -> datetime:
        return EPOCH + self.skew + timedelta(seconds=self.world.now)

    def monotonic(self) -> float:
        return self.loop.reading

    async def get(self) -> StoredRecord:
        return await self.send("get", 0, None)

    async def create(self, record: LockRecord) -> StoredRecord:
        return await self.send("create", 0, record)

    async def update(self, stored: StoredRecord, record: LockRecord) -> StoredRecord:
        assert isinstance(stored.origin, int)
        return await self.send("update", stored.origin, record)

    async def send(self, verb: str, version: int, record: LockRecord | None) -> StoredRecord:
        answer: asyncio.Future[StoredRecord] = self.loop.create_future()
        arrives_at = self.world.now + self.there
        self.world.coming.append(
            Request(verb, version, record, arrives_at, self.back, self.fate, answer)
        )
        return await answer

    def end(self) -> None:
        """Die, whatever was going on."""
        if not self.task.done():
            self.task.cancel()
        self.loop.run_until_complete(asyncio.gather(self.task, return_exceptions=True))
        self.loop.close()


WHO = st.integers(min_value=0, max_value=PROCESSES - 1)
DELAYS = st.sampled_from([0.0, 0.0, 0.5, 1.0, 4.0, 9.5, 12.0, 20.0])
SKEWS = st.sampled_from([timedelta(0), timedelta(hours=-7), timedelta(hours=7), timedelta(days=-9)])
SECONDS = st.sampled_from([0.5, 1.0, 2.0, 5.0, 10.0, 16.0, 20.0])


class ElectionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.processes: list[Process] = []
        self.born = 0

    @initialize(skews=st.lists(SKEWS, min_size=PROCESSES, max_size=PROCESSES))
    def start(self, skews: list[timedelta]) -> None:
        self.processes = [self.a_process(skew) for skew in skews]

    def teardown(self) -> None:
        for process in self.processes:
            process.end()

    def a_process(self, skew: timedelta) -> Process:
        self.born += 1
        return Process(self.world, f"p{self.born}", skew)

    def replace(self, who: int) -> None:
        self.processes[who].end()
        self.processes[who] = self.a_process(self.processes[who].skew)

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK)):
            self.world.now += TICK
            self.world.turn()
            for who, process in enumerate(self.processes):
                if process.is_paused:
                    process.behind += TICK
                else:
                    process.loop.go_on(TICK)
                    self.bury(who)
                self.at_most_one_leads()
            self.world.turn()

    def bury(self, who: int) -> None:
        """Replace a process that lost leadership, as whatever runs it would."""
        task = self.processes[who].task
        if task.done():
            assert isinstance(task.exception(), LeadershipLostError)
            assert not self.processes[who].term.is_open
            self.replace(who)

    @invariant()
    def at_most_one_leads(self) -> None:
        # A paused process counts: it may go on at any moment, and asks its fence then.
        assert sum(process.term.is_open for process in self.processes) <= 1

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        self.advance(seconds)

    @rule(who=WHO, there=DELAYS, back=DELAYS, fate=st.sampled_from(Fate))
    def the_network_changes(self, who: int, there: float, back: float, fate: Fate) -> None:
        process = self.processes[who]
        process.there, process.back, process.fate = there, back, fate

    @rule(who=WHO)
    def the_network_heals(self, who: int) -> None:
        self.the_network_changes(who, 0.0, 0.0, Fate.ANSWERED)

    @rule(who=WHO, skew=SKEWS)
    def the_wall_clock_jumps(self, who: int, skew: timedelta) -> None:
        self.processes[who].skew = skew

    @rule(who=WHO, seconds=SECONDS)
    def a_process_is_paused(self, who: int, seconds: float) -> None:
        self.processes[who].is_paused = True
        self.advance(seconds)

    @rule(who=WHO, seconds=SECONDS)
    def the_leader_is_paused(self, who: int, seconds: float) -> None:
        for process in self.processes:
            process.is_paused = process.is_paused or process.term.is_open
        self.advance(seconds)

    @precondition(lambda self: any(p.is_paused for p in self.processes))
    @rule(was_suspended=st.booleans())
    def the_paused_go_on(self, was_suspended: bool) -> None:
        for who, process in enumerate(self.processes):
            if process.is_paused and not was_suspended:
                process.loop.go_on(process.behind)
                self.bury(who)
                self.at_most_one_leads()
            process.is_paused = False
            process.behind = 0.0

    @rule(who=WHO)
    def a_process_is_killed(self, who: int) -> None:
        self.replace(who)

    @rule(who=WHO)
    def a_process_stops(self, who: int) -> None:
        process = self.processes[who]
        if process.is_paused:
            return
        process.task.cancel()
        process.task = process.loop.create_task(process.elector.release())
        for _ in range(10):
            process.loop.go_on(0)
            assert not process.term.is_open
            self.world.turn()
        if process.task.done() and not process.task.cancelled():
            process.task.exception()
        self.replace(who)

    @rule()
    def in_peace_somebody_leads_and_goes_on_leading(self) -> None:
        for who in range(PROCESSES):
            self.the_network_heals(who)
        self.the_paused_go_on(was_suspended=False)
        # What is still on its way from the dead arrives and is counted from then.
        self.advance(20 + SUCCESSION)
        leaders = [process for process in self.processes if process.term.is_open]
        assert len(leaders) == 1
        self.advance(30)
        assert [process for process in self.processes if process.term.is_open] == leaders

    @precondition(lambda self: any(p.term.is_open for p in self.processes))
    @rule(method=st.sampled_from(["killed", "paused", "cut off"]))
    def a_leader_that_is_gone_is_succeeded(self, method: str) -> None:
        self.in_peace_somebody_leads_and_goes_on_leading()
        (who,) = [n for n, process in enumerate(self.processes) if process.term.is_open]
        gone = self.processes[who]
        if method == "killed":
            self.a_process_is_killed(who)
        elif method == "paused":
            self.processes[who].is_paused = True
        else:
            self.processes[who].fate = Fate.LOST
        self.advance(SUCCESSION)
        assert [p for p in self.processes if p.term.is_open and p is not gone]


ElectionMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=20, deadline=None)
TestElection = ElectionMachine.TestCase
