"""A page that fails for everybody is not the proxies' fault, for a while."""

import re
import time
from collections.abc import Iterator

import pytest

from proxy_operator.domain.proxy import Phase
from tests.e2e.home import Home, Operator, a_local
from tests.e2e.origin import Origin
from tests.e2e.processes import until

NAMES = ("a", "b", "c", "d")
INTERVAL = 3
THRESHOLD = 2


@pytest.fixture
def operator(home: Home, origin: Origin) -> Iterator[Operator]:
    """Four local proxies, Ready, that are probed against one page."""
    check = {
        "url": origin.health,
        "interval": f"{INTERVAL}s",
        "timeout": "1s",
        "failureThreshold": THRESHOLD,
    }
    started = home.operator()
    home.apply(*(a_local(name, healthCheck=check) for name in NAMES))
    home.wait_ready(*NAMES)
    until(lambda: is_held(started) == {target_of(origin): False}, "all are watched")
    try:
        yield started
    finally:
        origin.is_well.set()


def target_of(origin: Origin) -> str:
    """The page as everybody may see it: without its path."""
    return origin.health.removesuffix("/health")


def is_held(operator: Operator) -> dict[str, bool]:
    """Whether verdicts are held, by target."""
    text = str(operator.ask("GET", "/metrics", server="metrics").body)
    found = re.findall(r'^proxy_operator_health_guard_active\{target="(.*)"\} (.*)$', text, re.M)
    return {target: float(held) == 1 for target, held in found}


def failures(operator: Operator) -> list[int]:
    """How many probes failed so far, by proxy."""
    text = str(operator.ask("GET", "/metrics", server="metrics").body)
    return [
        int(n)
        for n in re.findall(r"^proxy_operator_healthcheck_failures_total.* (\d+)$", text, re.M)
    ]


def told(home: Home, reason: str) -> int:
    return sum(home.events(name).count(reason) for name in NAMES)


def test_an_outage_of_the_page_flips_nobody(home: Home, origin: Origin, operator: Operator):
    before = failures(operator)
    origin.is_well.clear()
    until(lambda: is_held(operator) == {target_of(origin): True}, "verdicts are held")

    def are_due() -> bool:
        return all(n - m >= THRESHOLD for n, m in zip(failures(operator), before, strict=True))

    until(are_due, "each has failed as often as would turn it unhealthy")
    assert is_held(operator) == {target_of(origin): True}
    assert home.are_ready(*NAMES)
    assert operator.lease() is not None
    origin.is_well.set()
    until(
        lambda: is_held(operator) == {target_of(origin): False}, "it is over", within=INTERVAL + 1
    )
    until(lambda: told(home, "VerdictReleased") == 1, "that is said")
    assert told(home, "VerdictHeld") == 1
    assert told(home, "BecameUnhealthy") == 0
    [held] = operator.said("verdicts held")
    assert held["target"] == target_of(origin)
    assert "status 503" in held["target_says"]
    assert operator.said("verdicts released: the target answers again")


def test_an_outage_that_lasts_is_believed(home: Home, origin: Origin, operator: Operator):
    origin.is_well.clear()
    until(lambda: is_held(operator) == {target_of(origin): True}, "verdicts are held")
    held_at = time.monotonic()
    until(lambda: is_held(operator) == {target_of(origin): False}, "that ends")
    # Three intervals from the question, which a slow machine may have seen answered late.
    assert INTERVAL <= time.monotonic() - held_at <= 3 * INTERVAL + 1

    def are_unhealthy() -> bool:
        return all(proxy.status.phase is Phase.UNHEALTHY for proxy in home.proxies().values())

    until(are_unhealthy, "all are unhealthy")
    assert operator.lease() is None
    origin.is_well.set()
    home.wait_ready(*NAMES)
    until(lambda: told(home, "BecameUnhealthy") == len(NAMES), "it is said")
    assert (told(home, "VerdictHeld"), told(home, "VerdictReleased")) == (1, 1)
