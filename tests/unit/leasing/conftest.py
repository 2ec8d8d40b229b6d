"""A lease store on a clock that moves only when told."""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import pytest

from proxy_operator.domain.lease import Candidate, Lease, NoMatch
from proxy_operator.leasing.store import LeaseStore
from tests.builders import EPOCH


class HandClock:
    """Starts where floats do not add up nicely."""

    def __init__(self) -> None:
        self.seconds = 12345.678

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds


def a_candidate(name: str = "p1", **fields) -> Candidate:
    base = Candidate(
        uid=f"uid-{name}",
        namespace="default",
        name=name,
        address=("192.0.2.1", 3128),
        attributes={"region": "eu"},
        is_healthy=True,
        latency_millis=10,
        max_leases=None,
    )
    return msgspec.structs.replace(base, **fields)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def store(clock: HandClock) -> LeaseStore:
    return LeaseStore(clock)


@pytest.fixture
def acquire(store: LeaseStore) -> Callable[..., Lease | NoMatch]:
    def acquire(target: str = "", ttl: float = 300, namespace: str | None = None, **selector):
        return store.acquire(
            selector=selector, namespace=namespace, target=target, ttl=timedelta(seconds=ttl)
        )

    return acquire
