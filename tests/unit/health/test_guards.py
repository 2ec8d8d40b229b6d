"""The guards in their engine, on virtual time: whose fault it is, and for how long."""

import asyncio
import logging
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import HealthCheck
from proxy_operator.health.notices import MOST_EVENTS
from proxy_operator.health.ports import LocalProbeError, ProbeOutcome, ProbePhases, TargetRequest
from proxy_operator.health.targets import TargetRules
from proxy_operator.runtime.objects import key_of
from tests.unit.health.fakes import BLACK_HOLE, bad_answer, failed, ok
from tests.unit.health.test_inquiry import only
from tests.unit.health.worlds import TARGET, World, settled

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

LABEL = "http://target.example"
INTERVAL = 30.0


def a_black_hole() -> ProbeOutcome:
    """What comes of a proxy that waits for its target until the deadline."""
    return ProbeOutcome(
        error=ProbeError.TIMEOUT,
        detail="took too long: the answer",
        latency=timedelta(seconds=5),
        phases=ProbePhases(connect=0.001),
    )


async def test_an_outage_of_the_target_flips_nobody():
    world = World()
    world.fleet(20)
    async with world.running():
        await asyncio.sleep(60)
        assert world.engine.holding() == {LABEL: False}
        world.fail()
        await asyncio.sleep(80)
        assert world.engine.holding() == {LABEL: True}
        world.recover()
        await asyncio.sleep(300)
        assert world.engine.holding() == {LABEL: False}
        assert world.bell.rung == []


async def test_the_hold_lets_go_after_three_intervals_and_the_flips_happen():
    world = World()
    world.fleet(20)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(INTERVAL)
        [asked] = world.prober.asked
        assert asked.at < 60 + 0.75 * INTERVAL
        await asyncio.sleep(asked.at + 3 * INTERVAL - world.clock.monotonic() - 0.1)
        assert world.unhealthy() == []
        assert world.engine.holding() == {LABEL: True}
        await asyncio.sleep(0.2)
        assert world.engine.holding() == {LABEL: False}
        await asyncio.sleep(INTERVAL)
        assert len(world.unhealthy()) == 20
        assert len(world.bell.rung) == 20
        await asyncio.sleep(600)
        assert len(world.bell.rung) == 20
        assert len(world.prober.asked) == 3


async def test_a_target_that_answers_without_a_proxy_holds_nothing():
    world = World()
    world.fleet(20)
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = bad_answer()
        await asyncio.sleep(3 * INTERVAL + 0.1)
        assert len(world.unhealthy()) == 20
        assert world.events.told == []
        assert 1 <= len(world.prober.asked) <= 3


async def test_what_was_put_off_while_the_target_was_asked_happens_with_its_answer():
    world = World()
    world.fleet(20, health_check=HealthCheck(failure_threshold=1))
    world.prober.targets[TARGET] = ok(4000)
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = bad_answer()
        await world.until(lambda: world.prober.asked)
        flipped = len(world.unhealthy())
        await asyncio.sleep(3.9)
        assert len(world.unhealthy()) == flipped
        due = sum(sent.at > 60 for sent in world.prober.sent)
        assert due > flipped
        await asyncio.sleep(0.2)
        assert len(world.unhealthy()) >= due


@pytest.mark.parametrize(
    "answer",
    [
        failed(ProbeError.REFUSED),
        failed(ProbeError.DNS),
        failed(ProbeError.TIMEOUT),
        msgspec.structs.replace(failed(ProbeError.AUTH), phases=ProbePhases(connect=0.1)),
    ],
    ids=["refused", "dns", "slow to connect to", "407"],
)
async def test_faults_of_proxies_ask_nobody(answer):
    world = World()
    world.fleet(10)
    async with world.running():
        world.prober.targets[TARGET] = failed()
        await asyncio.sleep(60)
        world.prober.otherwise = answer
        await asyncio.sleep(3 * INTERVAL + 0.1)
        assert len(world.unhealthy()) == 10
        assert world.prober.asked == []


@pytest.mark.parametrize(
    ("size", "failing", "is_asked"),
    [(2, 2, False), (3, 3, True), (10, 5, False), (10, 6, True)],
    ids=["two of two", "three of three", "half", "most"],
)
async def test_only_most_of_at_least_three_say_anything(size, failing, is_asked):
    world = World()
    proxies = world.fleet(size)
    world.prober.targets[TARGET] = failed()
    async with world.running():
        await asyncio.sleep(60)
        for proxy in proxies[:failing]:
            world.prober.answers[proxy.metadata.name] = bad_answer()
        await asyncio.sleep(3 * INTERVAL + 0.1)
        assert bool(world.prober.asked) is is_asked
        assert bool(world.unhealthy()) is not is_asked


async def test_proxies_that_are_unhealthy_already_do_not_count():
    world = World()
    world.fleet(4)
    for n in range(6):
        host = f"192.0.2.{n}"
        world.prober.answers[host] = failed()
        world.add(host, host)
    async with world.running():
        await asyncio.sleep(60)
        assert len(world.unhealthy()) == 6
        world.fail()
        await asyncio.sleep(3 * INTERVAL)
        assert len(world.prober.asked) == 3
        assert len(world.unhealthy()) == 6


async def test_a_new_proxy_does_not_become_healthy_while_verdicts_are_held():
    world = World()
    world.fleet(10)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(INTERVAL)
        assert world.engine.holding() == {LABEL: True}
        proxy = world.add("new", "192.0.2.1")
        await asyncio.sleep(10)
        assert world.unhealthy() == ["new"]
        await asyncio.sleep(INTERVAL)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy
        world.recover()
        await asyncio.sleep(INTERVAL)
        assert world.unhealthy() == []


async def test_a_proxy_that_dies_while_verdicts_are_held_is_unhealthy_after_a_run_of_its_own():
    world = World()
    proxies = world.fleet(10)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(INTERVAL)
        name = proxies[0].metadata.name
        world.prober.answers[name] = failed(ProbeError.REFUSED)
        await asyncio.sleep(2 * INTERVAL - 0.1)
        assert world.unhealthy() == []
        await asyncio.sleep(INTERVAL + 0.1)
        assert name in world.unhealthy()


async def test_failures_of_the_outage_do_not_count_after_it():
    world = World()
    proxies = world.fleet(10)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(2.5 * INTERVAL)
        world.recover()
        dead = proxies[0].metadata.name
        world.prober.answers[dead] = bad_answer()
        recovered_at = world.clock.monotonic()
        await world.until(lambda: not world.engine.holding()[LABEL])
        assert world.clock.monotonic() - recovered_at < 0.6 * INTERVAL
        released_at = world.clock.monotonic()
        await asyncio.sleep(2 * INTERVAL - 0.2)
        assert world.unhealthy() == []
        await asyncio.sleep(released_at + 3 * INTERVAL - world.clock.monotonic())
        assert world.unhealthy() == [dead]


async def test_three_proxies_that_get_through_again_end_the_hold_at_once():
    world = World()
    world.fleet(300)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(2.2 * INTERVAL)
        assert world.engine.holding() == {LABEL: True}
        asked = len(world.prober.asked)
        world.recover()
        await asyncio.sleep(1)
        assert world.engine.holding() == {LABEL: False}
        # Whoever has not been probed since is under no suspicion either.
        await asyncio.sleep(2 * INTERVAL)
        assert len(world.prober.asked) == asked


async def test_a_probe_sent_before_the_target_was_well_again_says_nothing():
    world = World()
    world.fleet(60, health_check=HealthCheck(failure_threshold=2, interval="30s"))
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = world.prober.targets[TARGET] = a_black_hole()
        await asyncio.sleep(2 * INTERVAL)
        assert world.engine.holding() == {LABEL: True}
        assert world.prober.at_once > 3
        world.recover()
        await asyncio.sleep(600)
        assert world.bell.rung == []
        assert world.engine.holding() == {LABEL: False}


async def test_a_probe_of_before_counts_for_nobody_whatever_the_threshold():
    world = World()
    world.fleet(200, health_check=HealthCheck(failure_threshold=1))
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = world.prober.targets[TARGET] = a_black_hole()
        await world.until(lambda: world.prober.asked)
        asked_at = world.prober.asked[0].at
        await asyncio.sleep(asked_at + INTERVAL - 0.1 - world.clock.monotonic())
        flipped = len(world.unhealthy())
        # Before anything was known those flipped that were probed first, and no others.
        assert 80 <= flipped <= 110
        world.recover()
        await asyncio.sleep(0.2)
        assert world.engine.holding() == {LABEL: False}
        assert len([at for at, _ in world.prober.sent if at > asked_at + INTERVAL - 5]) > 10
        await asyncio.sleep(5)
        assert len(world.unhealthy()) <= flipped


async def test_the_target_is_asked_once_an_interval_as_its_proxies_are():
    world = World()
    check = HealthCheck(interval="10s", timeout="2s", expected_status=204, failure_threshold=10)
    world.fleet(10, health_check=check)
    world.prober.targets[TARGET] = BLACK_HOLE
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = bad_answer()
        await asyncio.sleep(100)
        times = [asked.at for asked in world.prober.asked]
        assert [b - a for a, b in pairwise(times)] == [pytest.approx(10, abs=0.01)] * 2
        assert world.prober.most_in_flight[TARGET] == 1
        assert world.prober.asked[0].request == TargetRequest(
            url=TARGET, expected_status=204, timeout=timedelta(seconds=2)
        )


async def test_a_second_outage_is_held_too():
    world = World()
    world.fleet(10)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(6 * INTERVAL)
        assert len(world.unhealthy()) == 10
        world.recover()
        await asyncio.sleep(3 * INTERVAL)
        assert world.unhealthy() == []
        world.fail()
        await asyncio.sleep(3 * INTERVAL)
        assert world.unhealthy() == []
        assert world.engine.holding() == {LABEL: True}


async def test_a_target_that_flaps_gets_no_more_time():
    world = World()
    world.fleet(30, health_check=HealthCheck(failure_threshold=1))
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(2 * INTERVAL)
        held_at = world.prober.asked[0].at
        world.recover()
        await asyncio.sleep(INTERVAL / 4)
        assert world.engine.holding() == {LABEL: False}
        world.fail()
        await asyncio.sleep(held_at + 3 * INTERVAL - world.clock.monotonic() + 0.1)
        assert world.engine.holding() == {LABEL: False}
        await asyncio.sleep(INTERVAL + 5)
        assert len(world.unhealthy()) == 30


async def test_targets_are_guarded_each_for_itself():
    world = World()
    other = "https://other.example/"
    world.fleet(10)
    for n in range(10):
        host = f"192.0.2.{n}"
        check = HealthCheck(url=other)
        world.add(host, host, health_check=check, status=settled(host))
        world.prober.answers[host] = ok()
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(INTERVAL)
        assert world.engine.holding() == {LABEL: True, "https://other.example": False}
        assert {asked.request.url for asked in world.prober.asked} == {TARGET}


async def test_what_happens_is_told_once_in_each_namespace(caplog):
    caplog.set_level(logging.INFO)
    world = World()
    for n, proxy in enumerate(world.fleet(40)):
        meta = msgspec.structs.replace(proxy.metadata, namespace=f"team-{n % 2}")
        world.store.remove(key_of(proxy))
        world.store.put(msgspec.structs.replace(proxy, metadata=meta))
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(2 * INTERVAL)
        world.recover()
        await asyncio.sleep(2 * INTERVAL)
    held = [one for one in world.events.told if one[1] == "VerdictHeld"]
    released = [one for one in world.events.told if one[1] == "VerdictReleased"]
    assert len(held) == len(released) == 2
    assert {name for name, _, _ in held} == {name for name, _, _ in released}
    assert held[0][2] == (
        "the probe target http://target.example fails without a proxy too (status: the answer has"
        " status 503, not 2xx): proxies that fail against it stay healthy for at most 3 intervals"
    )
    assert released[0][2] == "the probe target http://target.example answers again"
    said = [one.message for one in caplog.records if hasattr(one, "target")]
    assert said == [
        "most proxies fail against a target",
        "verdicts held",
        "most proxies fail against a target",
        "verdicts released: the target answers again",
    ]


async def test_many_namespaces_are_no_flood_of_events():
    world = World()
    for n, proxy in enumerate(world.fleet(100)):
        meta = msgspec.structs.replace(proxy.metadata, namespace=f"team-{n}")
        world.store.remove(key_of(proxy))
        world.store.put(msgspec.structs.replace(proxy, metadata=meta))
    async with world.running():
        world.fail()
        await asyncio.sleep(2 * INTERVAL)
    assert len(world.events.told) == MOST_EVENTS


async def test_an_edit_of_the_whole_fleet_does_not_end_a_hold():
    world = World()
    proxies = world.fleet(10)
    async with world.running():
        world.fail()
        await asyncio.sleep(2.5 * INTERVAL)
        assert world.engine.holding() == {LABEL: True}
        for proxy in proxies:
            world.edit(proxy, health_check=HealthCheck(success_threshold=2))
        await asyncio.sleep(5)
        assert world.engine.holding() == {LABEL: True}
        assert world.unhealthy() == []


async def test_a_target_is_forgotten_with_its_proxies():
    world = World()
    proxies = world.fleet(10)
    world.prober.targets[TARGET] = BLACK_HOLE
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = bad_answer()
        await world.until(lambda: world.prober.asked)
        for proxy in proxies[:8]:
            world.store.remove(key_of(proxy))
        await asyncio.sleep(0)
        # Too few to ever be guarded.
        assert world.engine.holding() == {}
        for proxy in proxies[8:]:
            world.store.remove(key_of(proxy))
        await asyncio.sleep(0.1)
        assert world.prober.in_flight[TARGET] == 0
        await asyncio.sleep(200)
        assert len(world.prober.asked) == 1


async def test_a_proxy_with_another_target_leaves_the_hold():
    world = World()
    proxies = world.fleet(10)
    async with world.running():
        await asyncio.sleep(60)
        world.fail()
        await asyncio.sleep(2 * INTERVAL)
        world.edit(proxies[0], health_check=HealthCheck(url="http://b.example/"))
        await asyncio.sleep(INTERVAL)
        # What was counted before the edit counts on: to its new target nobody else can testify.
        assert world.unhealthy() == [proxies[0].metadata.name]


@pytest.mark.parametrize("fault", [LocalProbeError("no free descriptor"), RuntimeError("a bug")])
async def test_a_target_that_cannot_be_asked_holds_nothing(fault):
    world = World()
    world.fleet(10)
    world.prober.targets[TARGET] = fault
    async with world.running():
        await asyncio.sleep(60)
        world.prober.otherwise = bad_answer()
        await asyncio.sleep(3 * INTERVAL + 0.1)
        assert len(world.unhealthy()) == 10
        assert world.events.told == []


async def test_a_url_that_is_not_allowed_is_asked_by_nobody():
    world = World(allowed=only(urls="check.example"), targets=TargetRules())
    world.fleet(5, health_check=HealthCheck(url="http://10.0.0.1/"))
    async with world.running():
        world.prober.otherwise = bad_answer()
        await asyncio.sleep(10 * INTERVAL)
        assert world.prober.sent == []
        assert world.prober.asked == []


async def test_stopping_ends_a_question():
    world = World()
    world.fleet(10)
    world.prober.targets[TARGET] = BLACK_HOLE
    async with world.running():
        world.prober.otherwise = bad_answer()
        await world.until(lambda: world.prober.asked)
        assert world.prober.in_flight[TARGET] == 1
    assert world.prober.in_flight[TARGET] == 0
    assert world.bell.rung == []


async def test_stopping_ends_a_hold_and_says_nothing():
    world = World()
    world.fleet(10)
    async with world.running():
        world.fail()
        await asyncio.sleep(2 * INTERVAL)
        assert world.engine.holding() == {LABEL: True}
        told = len(world.events.told)
    assert world.engine.holding() == {}
    await asyncio.sleep(10 * INTERVAL)
    assert len(world.events.told) == told
    assert len(world.prober.asked) == 2


async def test_one_outage_is_one_hold_even_where_a_round_takes_many_intervals():
    world = World(workers=2)
    world.fleet(30, health_check=HealthCheck(interval="5s", failure_threshold=2))
    async with world.running():
        await asyncio.sleep(10)
        world.prober.otherwise = world.prober.targets[TARGET] = a_black_hole()
        # 30 probes of 5 s by two workers: a round takes 75 s.
        await asyncio.sleep(4 * 75)
        assert len(world.unhealthy()) == 30
        assert [reason for _, reason, _ in world.events.told] == ["VerdictHeld", "VerdictReleased"]


async def test_an_outage_of_a_large_fleet():
    world = World()
    world.fleet(5000, health_check=HealthCheck(failure_threshold=1))
    async with world.running():
        world.fail()
        await world.until(lambda: world.engine.holding()[LABEL])
        flipped = len(world.bell.rung)
        assert flipped <= 2500
        await asyncio.sleep(INTERVAL / 2)
        assert len(world.bell.rung) == flipped
        assert len(world.prober.asked) == 1
        assert len(world.events.told) == 1
        world.recover()
        await asyncio.sleep(1)
        assert world.engine.holding() == {LABEL: False}
