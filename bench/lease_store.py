"""CPU cost of the lease store by fleet size, beside a plain scan in the same run.

    .venv/bin/python -m bench.lease_store [--quick]
"""

import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from proxy_operator.domain.lease import Candidate, Lease, ReportResult
from proxy_operator.leasing.store import LeaseStore

TTL = timedelta(minutes=5)
SIZES = (10, 100, 1_000, 10_000, 100_000)
ROUNDS = 5


class HandClock:
    """Moves a millisecond for every reading: leases and cooldowns end now and then."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 0.001
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)


def a_candidate(n: int, attributes: dict[str, str], max_leases: int | None = None) -> Candidate:
    return Candidate(
        uid=f"00000000-0000-4000-8000-{n:012}",
        namespace="default",
        name=f"proxy-{n}",
        address=("192.0.2.1", 1 + n % 60_000),
        attributes=attributes,
        is_healthy=True,
        latency_millis=20 + (n * 7919) % 400,
        max_leases=max_leases,
    )


def a_store(size: int, attributes: Callable[[int], dict[str, str]] | None = None) -> LeaseStore:
    made = attributes or (lambda n: {"region": ("eu", "us", "ap", "sa")[n % 4], "asn": str(n % 5)})
    store = LeaseStore(HandClock())
    for n in range(size):
        store.upsert(a_candidate(n, made(n)))
    return store


def acquire(store: LeaseStore, target: str = "", selector: dict[str, str] | None = None) -> Lease:
    lease = store.acquire(selector=selector or {}, namespace=None, target=target, ttl=TTL)
    assert isinstance(lease, Lease), lease
    return lease


def cool_down(store: LeaseStore, size: int, target: str, share: float = 0.3) -> None:
    """Ban what the target is offered first: the worst order, every cooldown is in the way."""
    for _ in range(int(size * share)):
        lease = acquire(store, target)
        store.report(lease.id, ReportResult.BANNED, None)
        store.release(lease.id)


class PlainScan:
    """What one does without an index: filter and take the minimum, for every request."""

    def __init__(self, size: int) -> None:
        self.fleet = [a_candidate(n, {"region": "eu"}) for n in range(size)]
        self.active = dict.fromkeys((c.uid for c in self.fleet), 0)
        self.cooldowns: dict[tuple[str, str], float] = {}

    def pair(self, selector: dict[str, str], target: str) -> None:
        best = None
        for c in self.fleet:
            if not c.is_healthy or selector.items() - c.attributes.items():
                continue
            active = self.active[c.uid]
            if c.max_leases is not None and active >= c.max_leases:
                continue
            if (c.uid, "") in self.cooldowns or (c.uid, target) in self.cooldowns:
                continue
            key = (active, c.latency_millis, c.name, c.namespace, c.uid)
            if best is None or key < best:
                best = key
        assert best is not None
        self.active[best[-1]] += 1
        self.active[best[-1]] -= 1


def micros(operation: Callable[[int], None], times: int, rounds: int = ROUNDS) -> list[float]:
    """CPU microseconds per operation, one figure a round."""
    found = []
    for turn in range(rounds):
        start = time.process_time()
        for n in range(times):
            operation(turn * times + n)
        found.append((time.process_time() - start) / times * 1e6)
    return found


def millis(operation: Callable[[], object]) -> float:
    start = time.process_time()
    operation()
    return (time.process_time() - start) * 1e3


def row(name: str, *cells: object) -> None:
    print(f"| {name:<46} | " + " | ".join(f"{c!s:>16}" for c in cells) + " |")


def show(found: list[float]) -> str:
    return f"{statistics.median(found):.1f} ({min(found):.1f}-{max(found):.1f})"


def pairs(store: LeaseStore, target: str, times: int) -> list[float]:
    """Acquire and release, with 50 leases held all the time."""
    held = [acquire(store, target).id for _ in range(min(50, times))]

    def pair(n: int) -> None:
        store.release(held[n % len(held)])
        held[n % len(held)] = acquire(store, target).id

    pair(0)
    return micros(pair, times)


def main_table(times: int) -> None:
    row("acquire + release, CPU us: median (range)", "no cooldown", "30 % in cooldown", "plain scan", "scan / indexed")
    for size in SIZES:
        calm = pairs(a_store(size), "shop", times)
        cooled_store = a_store(size)
        cool_down(cooled_store, size, "shop")
        cooled = pairs(cooled_store, "shop", times)
        scan = PlainScan(size)
        plain = micros(lambda _, s=scan: s.pair({}, "shop"), max(1, min(200, 200_000 // size)), 3)
        ratio = statistics.median(plain) / statistics.median(calm)
        row(f"{size:,} proxies", show(calm), show(cooled), show(plain), f"{ratio:.0f}x")


def saturated(times: int) -> None:
    row("all at capacity: refusal, CPU us", "same again", "after a change")
    for size in SIZES:
        store = LeaseStore(HandClock())
        for n in range(size):
            store.upsert(a_candidate(n, {"region": "eu"}, max_leases=1))
        ids = [acquire(store).id for _ in range(size)]

        def refuse(_: int, store: LeaseStore = store) -> None:
            store.acquire(selector={}, namespace=None, target="", ttl=TTL)

        def cycle(n: int, store: LeaseStore = store, ids: list[str] = ids) -> None:
            store.release(ids[n % len(ids)])
            ids[n % len(ids)] = acquire(store).id
            refuse(n, store)

        refuse(0)
        row(f"{size:,} proxies", show(micros(refuse, times // 4)), show(micros(cycle, times // 4)))


def weak_spots() -> None:
    row("weak spots", "ms, worst once", "us, then")
    for size in (10_000, 100_000):
        store = a_store(size)
        first = millis(lambda s=store: acquire(s, "", {"region": "eu"}))
        again = micros(lambda _, s=store: acquire(s, "", {"region": "eu"}) and None, 1000)
        row(f"{size:,}, 20 shapes: a new selector", f"{first:.2f}", show(again))
        cool_down(store, size, "shop")
        store.report(acquire(store, "shop").id, ReportResult.BANNED, "bank")
        cool_down(store, 300, "bank", 1.0)
        row(f"{size:,}: a new target with 300 bans", f"{millis(lambda s=store: acquire(s, 'bank')):.2f}", "")
    for size in (10_000, 100_000):
        store = a_store(size, lambda n: {"region": "eu", "id": str(n)})
        first = millis(lambda s=store: acquire(s, "", {"region": "eu"}))
        row(f"{size:,}, unique attribute: a new wide selector", f"{first:.2f}", show(pairs(store, "", 2000)))
        one = micros(lambda n, s=store, m=size: acquire(s, "", {"id": str(n % m)}) and None, 1000)
        row(f"{size:,}, unique attribute: 1,000s of narrow ones", "", show(one))
    for hot in (128, 256):
        store = a_store(10_000, lambda n: {"region": str(n % 300), "asn": str(n % 7)})

        def spread(n: int, store: LeaseStore = store, hot: int = hot) -> None:
            lease = acquire(store, "", {"region": str(n % hot)})
            store.release(lease.id)

        row(f"10,000: {hot} selectors in turn", "", show(micros(spread, 2000)))
    for hot in (16, 64, 128, 256):
        store = a_store(10_000, lambda _: {"region": "eu"})
        for n in range(hot):
            for _ in range(30):
                lease = acquire(store, f"t{n}")
                store.report(lease.id, ReportResult.BANNED, None)
                store.release(lease.id)

        def aim(n: int, store: LeaseStore = store, hot: int = hot) -> None:
            lease = acquire(store, f"t{n % hot}")
            store.release(lease.id)

        row(f"10,000: {hot} targets with 30 bans each in turn", "", show(micros(aim, 512, 3)))


def main() -> None:
    times = 2_000 if "--quick" in sys.argv else 20_000
    main_table(times)
    print()
    saturated(times)
    print()
    weak_spots()


if __name__ == "__main__":
    main()
