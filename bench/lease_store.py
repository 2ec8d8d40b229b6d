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

    def pair(self, _: int, target: str = "shop") -> None:
        selector: dict[str, str] = {}
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


def millis(operation: Callable[[int], None]) -> float:
    start = time.process_time()
    operation(0)
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
    row("acquire + release, CPU us", "no cooldown", "30 % in cooldown", "plain scan", "scan / ours")
    for size in SIZES:
        calm = pairs(a_store(size), "shop", times)
        cooled_store = a_store(size)
        cool_down(cooled_store, size, "shop")
        cooled = pairs(cooled_store, "shop", times)
        plain = micros(PlainScan(size).pair, max(1, min(200, 200_000 // size)), 3)
        ratio = statistics.median(plain) / statistics.median(calm)
        row(f"{size:,} proxies", show(calm), show(cooled), show(plain), f"{ratio:.0f}x")


def saturated(times: int) -> None:
    row("all at capacity, CPU us", "refusal", "+ release, acquire")
    for size in SIZES:
        store = LeaseStore(HandClock())
        for n in range(size):
            store.upsert(a_candidate(n, {"region": "eu"}, max_leases=1))
        ids = [acquire(store).id for _ in range(size)]
        refuse = refuser(store)

        def cycle(n: int, store: LeaseStore = store, ids: list[str] = ids) -> None:
            store.release(ids[n % len(ids)])
            ids[n % len(ids)] = acquire(store).id
            refuse(n)  # noqa: B023 - called within this turn of the loop

        refuse(0)
        row(f"{size:,} proxies", show(micros(refuse, times // 4)), show(micros(cycle, times // 4)))


def refuser(store: LeaseStore) -> Callable[[int], None]:
    def refuse(_: int) -> None:
        store.acquire(selector={}, namespace=None, target="", ttl=TTL)

    return refuse


def in_turn(
    store: LeaseStore, target: str, selector: dict[str, str], many: int
) -> Callable[[int], None]:
    """Acquire and release, with `#` in target and selector counted up to `many`."""

    def pair(n: int) -> None:
        turn = str(n % many)
        chosen = {key: value.replace("#", turn) for key, value in selector.items()}
        store.release(acquire(store, target.replace("#", turn), chosen).id)

    return pair


def new_selectors() -> None:
    row("a selector asked for the first time", "ms, once", "us, then")
    for size in (10_000, 100_000):
        for name, store in (
            ("20 shapes", a_store(size)),
            ("a shape per proxy", a_store(size, lambda n: {"region": "eu", "id": str(n)})),
        ):
            pair = in_turn(store, "", {"region": "eu"}, 1)
            row(f"{size:,}, {name}", f"{millis(pair):.2f}", show(micros(pair, 1000)))


def many_pairs() -> None:
    row("10,000 proxies, many hot pairs in turn", "us")
    for hot in (128, 256):
        store = a_store(10_000, lambda n: {"region": str(n % 300), "asn": str(n % 7)})
        pair = in_turn(store, "", {"region": "#"}, hot)
        row(f"{hot} selectors, 7 shapes each", show(micros(pair, 2000)))
    store = a_store(10_000, lambda n: {"region": "eu", "id": str(n)})
    pair = in_turn(store, "", {"id": "#"}, 10_000)
    row("10,000 selectors, a shape per proxy", show(micros(pair, 2000)))
    for hot in (16, 64, 128, 256):
        store = a_store(10_000, lambda _: {"region": "eu"})
        for n in range(hot):
            cool_down(store, 30, f"t{n}", 1.0)
        row(f"{hot} targets, 30 bans each", show(micros(in_turn(store, "t#", {}, hot), 512, 3)))


def main() -> None:
    times = 2_000 if "--quick" in sys.argv else 20_000
    main_table(times)
    print()
    saturated(times)
    print()
    new_selectors()
    print()
    many_pairs()


if __name__ == "__main__":
    main()
