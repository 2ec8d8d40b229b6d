"""What a client of the lease store can rely on, rule by rule."""

import gc
import tracemalloc
from datetime import timedelta

import msgspec
import pytest

from proxy_operator.domain.lease import Lease, NoMatch, ReportResult
from proxy_operator.leasing.store import LeaseStore, whole_seconds
from tests.builders import EPOCH
from tests.unit.leasing.conftest import HandClock, a_candidate

WINDOW = 900
NOBODY = NoMatch(considered=0, unhealthy=0, at_capacity=0, in_cooldown=0, retry_after_seconds=None)


def refused(**counts: int | None) -> NoMatch:
    return msgspec.structs.replace(NOBODY, considered=1, **counts)


def test_a_lease_says_what_was_granted_until_when(store, acquire, clock):
    store.upsert(a_candidate("p1", namespace="crawl"))
    lease = acquire("shop", ttl=90)
    assert lease == Lease(
        id=lease.id,
        uid="uid-p1",
        namespace="crawl",
        name="p1",
        target="shop",
        ttl_seconds=90,
        expires_at=EPOCH + timedelta(seconds=clock.seconds + 90),
    )
    assert list(store.leases()) == [lease]
    assert store.active_leases("uid-p1") == store.total_leases() == 1


def test_ids_are_128_random_bits(store, acquire):
    store.upsert(a_candidate())
    ids = {acquire().id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(bytes.fromhex(i)) == 16 for i in ids)


def test_selection_is_by_leases_then_latency_then_name_then_namespace(store, acquire):
    store.upsert(a_candidate("c", latency_millis=5))
    store.upsert(a_candidate("b", latency_millis=10))
    store.upsert(a_candidate("a", latency_millis=10, namespace="z", uid="az"))
    store.upsert(a_candidate("a", latency_millis=10, namespace="y", uid="ay"))
    order = [acquire().uid for _ in range(5)]
    assert order == ["uid-c", "ay", "az", "uid-b", "uid-c"]


def test_selector_and_namespace_narrow(store, acquire):
    store.upsert(a_candidate("eu1", attributes={"region": "eu", "asn": "1"}))
    store.upsert(a_candidate("us1", attributes={"region": "us", "asn": "1"}, namespace="n"))
    assert acquire(region="us").name == "us1"
    assert acquire(region="eu", asn="1").name == "eu1"
    assert acquire(namespace="n").name == "us1"
    assert acquire(region="eu", asn="2") == NOBODY
    assert acquire(namespace="n", region="eu") == NOBODY
    assert acquire(colour="red") == NOBODY


def test_a_released_place_is_preferred_again_while_others_are_held(store, acquire):
    for name in "abc":
        store.upsert(a_candidate(name))
    held = {lease.id: lease.name for lease in [acquire() for _ in range(9)]}
    assert sorted(held.values()) == [*"aaabbbccc"]
    acquire()
    store.release(next(i for i, name in held.items() if name == "b"))
    assert acquire().name == "b"
    assert [acquire().name for _ in range(3)] == ["b", "c", "a"]


@pytest.mark.parametrize("is_one_shape", [True, False])
def test_a_target_that_banned_its_favourites_gets_the_best_of_the_rest(
    store, acquire, clock, is_one_shape
):
    """Far more cooldowns than are looked at one by one, in one shape and over many."""
    for n in range(200):
        attributes = {"region": "eu"} if is_one_shape else {"region": "eu", "id": str(n)}
        store.upsert(a_candidate(f"p{n:03}", latency_millis=n, attributes=attributes))
    for n in range(150):
        lease = acquire("shop")
        assert lease.name == f"p{n:03}"
        store.report(lease.id, ReportResult.BANNED, None)
        store.release(lease.id)
    assert acquire("bank").name == "p000"
    assert [acquire("shop").name for _ in range(51)] == [
        *(f"p{n:03}" for n in range(150, 200)),
        "p150",
    ]
    store.upsert(a_candidate("new", latency_millis=0))
    assert acquire("shop").name == "new"
    clock.pass_time(WINDOW)
    assert acquire("shop").name == "new"
    assert acquire("shop").name == "p000"


def test_a_hundred_requests_for_one_place_grant_one(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    answers = [acquire() for _ in range(100)]
    assert sum(isinstance(a, Lease) for a in answers) == 1


def test_each_match_counts_once_in_order_of_precedence(store, acquire):
    store.upsert(a_candidate("full", max_leases=1))
    store.upsert(a_candidate("sick"))
    store.upsert(a_candidate("banned"))
    for _ in range(3):
        store.report(acquire(ttl=60).id, ReportResult.BANNED, None)
    store.upsert(a_candidate("sick", is_healthy=False))
    store.upsert(a_candidate("drained", max_leases=0))
    assert acquire() == NoMatch(
        considered=4, unhealthy=1, at_capacity=2, in_cooldown=1, retry_after_seconds=60
    )


@pytest.mark.parametrize(
    ("ttl", "passed", "expected"), [(60, 0, 60), (60, 0.1, 60), (60, 59.5, 1), (7.2, 0, 8)]
)
def test_retry_after_rounds_up_to_when_the_first_lease_ends(
    store, acquire, clock, ttl, passed, expected
):
    store.upsert(a_candidate("p1", max_leases=1))
    store.upsert(a_candidate("p2", max_leases=1))
    acquire(ttl=1000)
    acquire(ttl=ttl)
    clock.pass_time(passed)
    assert acquire().retry_after_seconds == expected
    clock.pass_time(expected)
    assert isinstance(acquire(), Lease)


def test_retry_after_is_when_the_cooldown_ends(store, acquire, clock):
    store.upsert(a_candidate())
    store.report(acquire("shop").id, ReportResult.BANNED, None)
    clock.pass_time(0.5)
    assert acquire("shop") == refused(in_cooldown=1, retry_after_seconds=WINDOW)
    clock.pass_time(WINDOW - 0.5)
    assert isinstance(acquire("shop"), Lease)


def test_a_match_in_two_cooldowns_is_due_when_both_have_ended(store, acquire, clock):
    store.upsert(a_candidate())
    lease = acquire()
    store.report(lease.id, ReportResult.BANNED, None)
    clock.pass_time(100)
    store.report(lease.id, ReportResult.BANNED, "shop")
    assert acquire("shop").retry_after_seconds == WINDOW
    assert acquire("bank").retry_after_seconds == WINDOW - 100


@pytest.mark.parametrize("fields", [{"max_leases": 0}, {"is_healthy": False}])
def test_nothing_is_due_back_from_a_drained_or_unhealthy_proxy(store, acquire, fields):
    store.upsert(a_candidate())
    store.report(acquire().id, ReportResult.BANNED, None)
    store.upsert(a_candidate(**fields))
    assert acquire().retry_after_seconds is None


def test_floats_do_not_add_a_second():
    assert whole_seconds((12345.678 + 60) - 12345.678) == 60
    assert whole_seconds(0.0000001) == 1


def test_a_report_for_one_target_blocks_only_that_one_and_at_once(store, acquire):
    store.upsert(a_candidate())
    assert store.report(acquire("A").id, ReportResult.RATE_LIMITED, None)
    assert isinstance(acquire("A"), NoMatch)
    for target in ("B", "a", "A ", ""):
        assert isinstance(acquire(target), Lease), target


@pytest.mark.parametrize("empty", [None, ""])
@pytest.mark.parametrize(
    ("lease_target", "blocked", "free"), [("A", ["A"], ["B", ""]), ("", ["", "A", "B"], [])]
)
def test_a_report_without_target_falls_back_to_the_lease_then_to_everybody(
    store, acquire, empty, lease_target, blocked, free
):
    store.upsert(a_candidate())
    store.report(acquire(lease_target).id, ReportResult.BANNED, empty)
    assert all(isinstance(acquire(t), NoMatch) for t in blocked)
    assert all(isinstance(acquire(t), Lease) for t in free)


def test_the_target_of_the_report_wins(store, acquire):
    store.upsert(a_candidate())
    store.report(acquire("A").id, ReportResult.BANNED, "B")
    assert isinstance(acquire("A"), Lease)
    assert isinstance(acquire("B"), NoMatch)


def test_ok_neither_blocks_nor_unblocks(store, acquire):
    store.upsert(a_candidate())
    lease = acquire("A")
    assert store.report(lease.id, ReportResult.OK, None)
    assert isinstance(acquire("A"), Lease)
    store.report(lease.id, ReportResult.BANNED, None)
    store.report(lease.id, ReportResult.OK, None)
    assert isinstance(acquire("A"), NoMatch)


def test_a_second_report_starts_the_cooldown_anew(store, acquire, clock):
    store.upsert(a_candidate())
    lease = acquire("A", ttl=2000)
    store.report(lease.id, ReportResult.BANNED, None)
    clock.pass_time(500)
    store.report(lease.id, ReportResult.BANNED, None)
    clock.pass_time(WINDOW - 1)
    assert acquire("A").retry_after_seconds == 1
    clock.pass_time(1)
    assert isinstance(acquire("A"), Lease)


@pytest.mark.parametrize("how", ["expired", "released"])
def test_an_ended_lease_can_be_reported_for_the_window(store, acquire, clock, how):
    store.upsert(a_candidate())
    ttl = 10 if how == "expired" else 10_000
    late, too_late = acquire("A", ttl=ttl), acquire("B", ttl=ttl)
    if how == "expired":
        clock.pass_time(10)
    else:
        store.release(late.id)
        store.release(too_late.id)
    clock.pass_time(WINDOW - 0.01)
    assert store.report(late.id, ReportResult.BANNED, None)
    assert isinstance(acquire("A"), NoMatch)
    clock.pass_time(0.01)
    assert not store.report(too_late.id, ReportResult.BANNED, None)
    assert isinstance(acquire("B"), Lease)


def test_a_lease_ends_exactly_at_its_ttl(store, acquire, clock):
    store.upsert(a_candidate(max_leases=1))
    acquire(ttl=10)
    clock.pass_time(9.999)
    assert isinstance(acquire(), NoMatch)
    assert store.active_leases("uid-p1") == 1
    clock.pass_time(0.001)
    assert store.active_leases("uid-p1") == 0
    assert isinstance(acquire(), Lease)


def test_release_frees_the_place_and_repeating_it_is_harmless(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    lease = acquire()
    store.release(lease.id)
    store.release(lease.id)
    store.release("unknown")
    assert isinstance(acquire(), Lease)
    assert isinstance(acquire(), NoMatch)


def test_renew_counts_from_now_and_may_shorten(store, acquire, clock):
    store.upsert(a_candidate(max_leases=1))
    lease = acquire(ttl=100)
    clock.pass_time(50)
    renewed = store.renew(lease.id, timedelta(seconds=100))
    assert renewed.id == lease.id
    assert renewed.ttl_seconds == 100
    assert renewed.expires_at == clock.now() + timedelta(seconds=100)
    assert acquire().retry_after_seconds == 100
    store.renew(lease.id, timedelta(seconds=5))
    assert acquire().retry_after_seconds == 5
    clock.pass_time(5)
    assert store.renew(lease.id, timedelta(seconds=5)) is None
    assert store.renew("unknown", timedelta(seconds=5)) is None


def test_a_released_lease_is_not_renewed(store, acquire):
    store.upsert(a_candidate())
    lease = acquire()
    store.release(lease.id)
    assert store.renew(lease.id, timedelta(seconds=5)) is None


def test_leases_are_listed_soonest_end_first(store, acquire):
    store.upsert(a_candidate())
    long, short, middle = acquire(ttl=30), acquire(ttl=10), acquire(ttl=20)
    assert [lease.id for lease in store.leases()] == [short.id, middle.id, long.id]
    store.renew(short.id, timedelta(seconds=60))
    assert [lease.id for lease in store.leases()] == [middle.id, long.id, short.id]


def test_an_unhealthy_proxy_keeps_its_leases_and_they_count_afterwards(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    lease = acquire()
    store.upsert(a_candidate(max_leases=1, is_healthy=False))
    assert acquire() == refused(unhealthy=1)
    assert [held.id for held in store.leases()] == [lease.id]
    store.upsert(a_candidate(max_leases=1))
    assert acquire() == refused(at_capacity=1, retry_after_seconds=300)


def test_a_removed_proxy_loses_leases_cooldowns_and_late_reports(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    ended, held = acquire(), None
    store.release(ended.id)
    held = acquire("A")
    store.report(held.id, ReportResult.BANNED, None)
    store.remove("uid-p1")
    store.remove("uid-p1")
    assert list(store.leases()) == []
    assert not store.report(held.id, ReportResult.BANNED, None)
    store.upsert(a_candidate(max_leases=1))
    assert not store.report(ended.id, ReportResult.BANNED, None)
    assert isinstance(acquire("A"), Lease)


def test_a_namesake_with_another_uid_starts_clean(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    old = acquire("A")
    store.report(old.id, ReportResult.BANNED, None)
    store.upsert(a_candidate(uid="successor", max_leases=1))
    assert acquire("A").uid == "successor"
    assert store.total_leases() == 1
    store.remove("uid-p1")
    assert store.total_leases() == 1


def test_a_new_address_ends_the_cooldowns(store, acquire):
    store.upsert(a_candidate())
    store.report(acquire("A").id, ReportResult.BANNED, None)
    store.upsert(a_candidate(address=None, is_healthy=False))
    store.upsert(a_candidate())
    assert isinstance(acquire("A"), NoMatch)
    store.upsert(a_candidate(address=("192.0.2.2", 3128)))
    assert isinstance(acquire("A"), Lease)


@pytest.mark.parametrize("address", [None, ("192.0.2.2", 3128)])
def test_a_proxy_that_loses_its_address_loses_its_leases(store, acquire, address):
    store.upsert(a_candidate(max_leases=1))
    acquire("A")
    store.upsert(a_candidate(max_leases=1, address=address, is_healthy=False))
    assert [*store.leases()] == []
    assert store.active_leases("uid-p1") == 0
    store.upsert(a_candidate(max_leases=1, address=("192.0.2.2", 3128)))
    assert isinstance(acquire("A"), Lease)


def test_a_late_report_on_an_old_address_does_not_block_the_new_one(store, acquire):
    store.upsert(a_candidate())
    lease = acquire("A")
    store.upsert(a_candidate(address=("192.0.2.2", 3128)))
    assert store.report(lease.id, ReportResult.BANNED, None)
    assert isinstance(acquire("A"), Lease)


def test_attributes_may_change_under_a_lease(store, acquire):
    store.upsert(a_candidate(max_leases=1))
    acquire(region="eu")
    store.upsert(a_candidate(max_leases=1, attributes={"region": "us"}))
    assert acquire(region="eu") == NOBODY
    assert acquire(region="us") == refused(at_capacity=1, retry_after_seconds=300)


def test_a_cap_may_be_lowered_under_its_leases(store, acquire, clock):
    store.upsert(a_candidate(max_leases=3))
    acquire(ttl=10)
    acquire(ttl=20)
    store.upsert(a_candidate(max_leases=1))
    assert acquire() == refused(at_capacity=1, retry_after_seconds=10)
    clock.pass_time(10)
    assert acquire() == refused(at_capacity=1, retry_after_seconds=10)
    clock.pass_time(10)
    assert isinstance(acquire(), Lease)


def traced(action) -> int:
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    action()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


@pytest.fixture
def tracing():
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_refusals_of_an_empty_fleet_leave_nothing(store, acquire, tracing):
    def ask(start: int) -> None:
        for n in range(start, start + 3000):
            assert acquire(f"target-{n}", region=f"r{n}", namespace=f"n{n}") == NOBODY

    ask(0)
    assert traced(lambda: ask(10_000)) < 2_000


def test_memory_is_flat_once_leases_and_cooldowns_have_ended(tracing):
    clock = HandClock()
    store = LeaseStore(clock)
    for n in range(50):
        store.upsert(a_candidate(f"p{n}", attributes={"region": f"r{n % 5}"}))

    def live(start: int) -> None:
        for n in range(start, start + 1000):
            lease = store.acquire(
                selector={"region": f"r{n % 5}"} if n % 2 else {},
                namespace=None,
                target=f"target-{n % 40}",
                ttl=timedelta(seconds=30),
            )
            if isinstance(lease, Lease) and n % 3 == 0:
                store.report(lease.id, ReportResult.BANNED, None if n % 9 else f"own-{n}")
            if isinstance(lease, Lease) and n % 4:
                store.release(lease.id)
        clock.pass_time(2 * WINDOW)
        store.sweep()

    live(0)
    live(10_000)
    assert traced(lambda: live(20_000)) < 20_000


def test_targets_leave_nothing_once_their_cooldowns_have_ended(tracing):
    clock = HandClock()
    store = LeaseStore(clock)
    for n in range(20):
        store.upsert(a_candidate(f"p{n}"))

    def ban(start: int) -> None:
        for n in range(start, start + 100):
            for _ in range(10):
                lease = store.acquire(
                    selector={}, namespace=None, target=f"t{n}", ttl=timedelta(seconds=5)
                )
                assert isinstance(lease, Lease)
                store.report(lease.id, ReportResult.BANNED, None)
                store.release(lease.id)
        clock.pass_time(WINDOW)
        store.sweep()

    ban(0)
    assert traced(lambda: ban(1000)) < 20_000
    assert not store._index._recent_lanes


def test_memory_is_flat_under_churn_of_proxies(tracing):
    store = LeaseStore(HandClock())
    store.upsert(a_candidate("stays", latency_millis=1))

    def churn(start: int) -> None:
        for n in range(start, start + 1000):
            store.upsert(a_candidate(f"p{n}", attributes={"region": "eu", "id": str(n)}))
            lease = store.acquire(
                selector={"region": "eu"}, namespace=None, target="", ttl=timedelta(seconds=5)
            )
            assert isinstance(lease, Lease)
            store.release(lease.id)
            store.remove(f"uid-p{n}")

    churn(0)
    grown = traced(lambda: churn(10_000))
    # Released leases stay known for late reports; that much, and no more, is kept of each.
    assert grown < 1000 * 1_200
