"""The indexed lease store decides exactly as a plain scan of the fleet does."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from proxy_operator.domain.lease import Candidate, Lease, NoMatch, ReportResult
from proxy_operator.leasing import group
from proxy_operator.leasing.store import LeaseStore
from tests.property.plain_lease_store import PlainLeaseStore

WINDOW = 60.0
TARGETS = ("", "a", "b", "c")
SELECTORS: tuple[dict[str, str], ...] = (
    {},
    {"region": "eu"},
    {"region": "us"},
    {"tier": "1"},
    {"region": "eu", "tier": "1"},
    {"id": "3"},
    {"region": "mars"},
)
NAMESPACES = ("default", "other")

targets = st.sampled_from(TARGETS)
selectors = st.sampled_from(SELECTORS)
namespaces = st.sampled_from((None, *NAMESPACES, "nowhere"))
ttls = st.sampled_from((1.0, 5.0, 7.5, 30.0, 300.0)).map(lambda s: timedelta(seconds=s))
uids = st.integers(0, 19)


class SettableClock:
    """Time that moves only when told; starts where floats do not add up nicely."""

    def __init__(self) -> None:
        self.seconds = 12345.678

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


def attributes(n: int, variant: int) -> dict[str, str]:
    """Some fleets have few shapes, some one per proxy; `variant` moves a proxy between them."""
    found = {"region": ("eu", "us")[(n + variant) % 2]}
    if n % 3 == 0:
        found["tier"] = str(n % 2)
    if variant == 2:
        found["id"] = str(n)
    return found


def a_candidate(n: int, **fields) -> Candidate:
    base = Candidate(
        uid=f"uid-{n}",
        namespace=NAMESPACES[n % 7 == 0],
        name=f"p{n:02}",
        address=(f"192.0.2.{n}", 3128),
        attributes=attributes(n, 0),
        is_healthy=True,
        latency_millis=(n * 7) % 5 * 10,
        max_leases=None,
    )
    return msgspec.structs.replace(base, **fields)


class LeaseStoreMachine(RuleBasedStateMachine):
    leases = Bundle("leases")

    @initialize(
        size=st.sampled_from((0, 1, 5, 20)),
        variant=st.sampled_from((0, 2)),
        cap=st.sampled_from((None, 1)),
    )
    def start(self, size, variant, cap):
        self.clock = SettableClock()
        self.store = LeaseStore(self.clock, timedelta(seconds=WINDOW))
        self.plain = PlainLeaseStore(WINDOW)
        for n in range(size):
            candidate = a_candidate(n, attributes=attributes(n, variant), max_leases=cap)
            self.upsert(candidate)

    def upsert(self, candidate: Candidate) -> None:
        self.store.upsert(candidate)
        self.plain.upsert(candidate, self.clock.monotonic())

    def change(self, n: int, **fields) -> None:
        found = self.plain.candidates.get(f"uid-{n}")
        if found is not None:
            self.upsert(msgspec.structs.replace(found, **fields))

    def compare(self, selector, namespace, target, ttl) -> Lease | NoMatch:
        now = self.clock.seconds
        expected = self.plain.choose(selector, namespace, target, now)
        got = self.store.acquire(selector=selector, namespace=namespace, target=target, ttl=ttl)
        if isinstance(expected, NoMatch):
            assert got == expected
        else:
            assert isinstance(got, Lease), f"refused {got}, expected {expected}"
            assert got.uid == expected
            self.plain.grant(got.id, expected, target, now + ttl.total_seconds())
        return got

    @rule(target=leases, selector=selectors, namespace=namespaces, wanted=targets, ttl=ttls)
    def acquire(self, selector, namespace, wanted, ttl):
        got = self.compare(selector, namespace, wanted, ttl)
        return got.id if isinstance(got, Lease) else multiple()

    @rule(selector=selectors, wanted=targets, ttl=ttls, times=st.integers(2, 25))
    def acquire_many(self, selector, wanted, ttl, times):
        for _ in range(times):
            self.compare(selector, None, wanted, ttl)

    @rule(lease_id=leases)
    def release(self, lease_id):
        self.plain.release(lease_id, self.clock.seconds)
        self.store.release(lease_id)

    @rule(every=st.integers(1, 4))
    def release_many(self, every):
        for lease in [*self.store.leases()][::every]:
            self.release(lease.id)

    @rule(lease_id=leases, ttl=ttls)
    def renew(self, lease_id, ttl):
        expires = self.clock.seconds + ttl.total_seconds()
        renewed = self.plain.renew(lease_id, expires, self.clock.seconds)
        assert (self.store.renew(lease_id, ttl) is not None) == renewed

    @rule(
        lease_id=leases,
        result=st.sampled_from(ReportResult),
        wanted=st.sampled_from((None, *TARGETS)),
    )
    def report(self, lease_id, result, wanted):
        is_ok = result is ReportResult.OK
        known = self.plain.report(lease_id, wanted, self.clock.seconds, is_ok=is_ok)
        assert self.store.report(lease_id, result, wanted) == known

    @rule(wanted=targets, times=st.integers(1, 20))
    def ban_the_best(self, wanted, times):
        """The proxies a target likes best are the ones it bans: dense blocks at the front."""
        for _ in range(times):
            got = self.compare({}, None, wanted, timedelta(seconds=5))
            if isinstance(got, NoMatch):
                break
            self.plain.report(got.id, None, self.clock.seconds, is_ok=False)
            assert self.store.report(got.id, ReportResult.BANNED, None)
            self.release(got.id)

    @rule(step=st.sampled_from((0.1, 0.5, 1.0, 4.9, 5.0, 30.0, 59.9, 60.0, 61.0, 500.0)))
    def pass_time(self, step):
        self.clock.seconds += step

    @rule(n=uids, is_healthy=st.booleans())
    def flip_health(self, n, is_healthy):
        self.change(n, is_healthy=is_healthy)

    @rule(n=uids, latency=st.integers(0, 50))
    def change_latency(self, n, latency):
        self.change(n, latency_millis=latency)

    @rule(n=uids, cap=st.sampled_from((None, 0, 1, 2, 3)))
    def change_cap(self, n, cap):
        self.change(n, max_leases=cap)

    @rule(cap=st.sampled_from((None, 0, 1, 2)), selector=selectors, wanted=targets)
    def change_all_caps(self, cap, selector, wanted):
        for n in range(20):
            self.change(n, max_leases=cap)
        self.compare(selector, None, wanted, timedelta(seconds=5))

    @rule(n=uids, variant=st.integers(0, 2))
    def change_attributes(self, n, variant):
        self.change(n, attributes=attributes(n, variant))

    @rule(n=uids, address=st.sampled_from((None, ("192.0.2.200", 1), ("192.0.2.201", 1))))
    def change_address(self, n, address):
        self.change(n, address=address, is_healthy=address is not None)

    @rule(n=uids)
    def remove(self, n):
        self.plain.remove(f"uid-{n}")
        self.store.remove(f"uid-{n}")

    @rule(n=uids, variant=st.integers(0, 2), cap=st.sampled_from((None, 1)))
    def add(self, n, variant, cap):
        self.upsert(a_candidate(n, attributes=attributes(n, variant), max_leases=cap))

    @rule(n=uids, serial=st.integers(1, 3))
    def replace(self, n, serial):
        self.upsert(a_candidate(n, uid=f"uid-{n}-{serial}"))

    @rule()
    def sweep(self):
        self.store.sweep()

    @invariant()
    def counts_agree(self):
        if not hasattr(self, "store"):
            return
        self.plain.settle(self.clock.seconds)
        for uid in self.plain.candidates:
            assert self.store.active_leases(uid) == len(self.plain.active(uid))
        expected = [c.expires for c in self.plain.claims.values() if c.ended is None]
        by_id = {k: c.expires for k, c in self.plain.claims.items()}
        assert [by_id[lease.id] for lease in self.store.leases()] == sorted(expected)


@pytest.mark.parametrize("few", [0, 1, 8])
def test_decides_as_a_plain_scan(few, monkeypatch):
    """With `few` small, rankings for single targets are built in fleets of any size."""
    monkeypatch.setattr(group, "_FEW", few)
    monkeypatch.setattr(group, "_SPARE", few)
    run_state_machine_as_test(
        LeaseStoreMachine,
        settings=settings(
            max_examples=100,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
