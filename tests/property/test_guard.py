"""Whatever target and proxies do: verdicts are held for a time, and only while both fail."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import HealthCheck, Proxy
from proxy_operator.health.ports import ProbeOutcome, ProbePhases
from proxy_operator.runtime.objects import key_of
from tests.unit.health.fakes import bad_answer, failed, ok
from tests.unit.health.worlds import TARGET, World

INTERVAL = 10.0
TIMEOUT = 2.0
STEP = 0.25
SIZE = 6
FAILURES = st.sampled_from(
    [
        bad_answer(),
        ProbeOutcome(
            error=ProbeError.TIMEOUT,
            detail="took too long: the answer",
            latency=timedelta(seconds=TIMEOUT),
            phases=ProbePhases(connect=0.001),
        ),
    ]
)
SPANS = st.sampled_from([1.0, 4.0, 11.0, 25.0])


class GuardMachine(RuleBasedStateMachine):
    """The engine, a target and its proxies, looked at four times a second."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop(start=0)
        asyncio.set_event_loop(self.loop)
        self.world = World()
        self.failure: ProbeOutcome | None = None
        self.is_fault_of_proxies = False
        self.failed_at = float("-inf")
        """When the target itself failed last."""
        self.broken: set[str] = set()
        self.seeded: set[str] = set()
        self.born = 0
        self.steps = 0
        self.ends_holding = False
        self.held_since: float | None = None
        self.engine_task: asyncio.Task[None] | None = None

    @initialize(threshold=st.integers(1, 4))
    def begin(self, threshold: int) -> None:
        self.check = HealthCheck(
            interval=f"{INTERVAL:.0f}s", timeout=f"{TIMEOUT:.0f}s", failure_threshold=threshold
        )
        self.seeded = {one.metadata.name for one in self.world.fleet(SIZE, health_check=self.check)}
        self.healthy = set(self.seeded)
        self.engine_task = self.loop.create_task(self.world.engine.run())

    def teardown(self) -> None:
        if self.engine_task is not None:
            self.engine_task.cancel()
            self.loop.run_until_complete(asyncio.gather(self.engine_task, return_exceptions=True))
        self.loop.close()
        asyncio.set_event_loop(None)

    @property
    def now(self) -> float:
        return self.loop.time()

    @property
    def is_holding(self) -> bool:
        return any(self.world.engine.holding().values())

    def proxies(self) -> list[Proxy]:
        return sorted(self.world.store.list(), key=lambda one: one.metadata.name)

    def arrange(self) -> None:
        """Let every proxy answer as it and the target are by now."""
        prober = self.world.prober
        well: ProbeOutcome = ok()
        prober.otherwise = self.failure or well
        prober.targets[TARGET] = well if self.is_fault_of_proxies else prober.otherwise
        prober.answers = dict.fromkeys(self.broken, failed(ProbeError.REFUSED))

    @rule(failure=FAILURES, seconds=SPANS)
    def the_target_fails(self, failure: ProbeOutcome, seconds: float) -> None:
        self.failure, self.is_fault_of_proxies = failure, False
        self.arrange()
        self.time_passes(seconds)

    @rule(failure=FAILURES, seconds=SPANS)
    def proxies_fail_alone(self, failure: ProbeOutcome, seconds: float) -> None:
        """The target is well, though it looks through all of them as if it were not."""
        self.failure, self.is_fault_of_proxies = failure, True
        self.arrange()
        self.time_passes(seconds)

    @rule(seconds=SPANS)
    def the_target_recovers(self, seconds: float) -> None:
        self.failure, self.is_fault_of_proxies = None, False
        self.arrange()
        self.time_passes(seconds)

    @rule(at=st.integers(0, 20))
    def a_proxy_breaks(self, at: int) -> None:
        proxies = self.proxies()
        self.broken.add(proxies[at % len(proxies)].metadata.name)
        self.arrange()

    @precondition(lambda self: self.broken)
    @rule()
    def proxies_are_mended(self) -> None:
        self.broken = set()
        self.arrange()

    @rule()
    def a_proxy_comes(self) -> None:
        self.born += 1
        name = f"192.0.2.{self.born}"
        self.act(lambda: self.world.add(name, name, health_check=self.check))

    @precondition(lambda self: len(self.proxies()) > 1)
    @rule(at=st.integers(0, 20))
    def a_proxy_goes(self, at: int) -> None:
        proxies = self.proxies()
        gone = proxies[at % len(proxies)]
        self.act(lambda: self.world.store.remove(key_of(gone)))
        self.healthy.discard(gone.metadata.name)

    @rule(seconds=SPANS)
    def time_passes(self, seconds: float) -> None:
        self.loop.run_until_complete(self.watch(seconds))

    async def watch(self, seconds: float) -> None:
        for _ in range(int(seconds / STEP)):
            was_holding = self.is_holding
            await asyncio.sleep(STEP)
            self.look(was_holding=was_holding)
        self.ends_holding = self.is_holding

    def act(self, action: Callable[[], object]) -> None:
        """Do it within the loop, where the engine can tell the time."""

        async def acting() -> None:
            action()

        self.loop.run_until_complete(acting())

    def look(self, *, was_holding: bool) -> None:
        before, self.healthy = self.healthy, self.shown_healthy()
        is_held_throughout = was_holding and self.is_holding
        for name in before - self.healthy:
            assert not is_held_throughout or self.last_error(name) is ProbeError.REFUSED
        for name in self.healthy - before:
            assert self.last_error(name) is None, "healthy by nothing but a success"
        self.held_since = None if not self.is_holding else (self.held_since or self.now)
        if self.failure is not None and not self.is_fault_of_proxies:
            self.failed_at = self.now
        if self.held_since is not None:
            # Asked once an interval, a target that is well is found out.
            assert self.now - self.failed_at <= INTERVAL + TIMEOUT + STEP
            assert self.now - self.held_since <= 3 * INTERVAL
        asked = [one.at for one in self.world.prober.asked]
        assert all(later - earlier >= INTERVAL - 1e-6 for earlier, later in pairwise(asked))
        assert self.world.prober.most_in_flight[TARGET] <= 1

    def shown_healthy(self) -> set[str]:
        """Names of those whose last verdict is healthy: reported, or taken over at the start."""
        found = set()
        for proxy in self.proxies():
            name, report = proxy.metadata.name, self.world.report(proxy)
            if report.is_healthy if report is not None else name in self.seeded:
                found.add(name)
        return found

    def last_error(self, name: str) -> ProbeError | None:
        [*_, last] = next(
            outcomes for key, outcomes in self.world.recorder.probes.items() if key.name == name
        )
        return last.error

    @rule()
    def an_outage_that_lasts_is_seen(self) -> None:
        """Holding, then a whole run of failures, and the round in which they are noticed."""
        self.the_target_fails(bad_answer(), 0)
        self.time_passes((3 + 2 + self.check.failure_threshold) * INTERVAL)
        assert not self.ends_holding
        assert self.healthy == set()

    @rule()
    def a_target_that_is_well_leaves_nothing_behind(self) -> None:
        self.the_target_recovers(0)
        self.proxies_are_mended()
        self.time_passes(2 * INTERVAL)
        assert not self.ends_holding
        assert self.healthy == {one.metadata.name for one in self.proxies()}


TestGuard = GuardMachine.TestCase
TestGuard.settings = settings(max_examples=25, stateful_step_count=10, deadline=None)
