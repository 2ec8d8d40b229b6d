"""The engine on virtual time, against a scripted world of proxies."""

import asyncio
from datetime import timedelta
from ipaddress import ip_network
from itertools import pairwise

import msgspec
import pytest

from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Endpoint, HealthCheck, Scheme, SecretRef
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.engine import HealthEngine, HealthSettings
from proxy_operator.health.ports import LocalProbeError, Ports
from proxy_operator.health.targets import TargetRules
from proxy_operator.runtime.objects import key_of
from tests.builders import EPOCH, a_proxy
from tests.unit.health.fakes import (
    BLACK_HOLE,
    failed,
    ok,
)
from tests.unit.health.test_inquiry import only
from tests.unit.health.worlds import TARGET, World, settled

# Fewer idle turns of the loop before time moves than looptime takes by default: a fleet is many.
pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)


async def test_a_new_proxy_is_probed_at_once_and_its_first_verdict_reported():
    world = World()
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(0.2)
        assert world.prober.times("192.0.2.1") == [pytest.approx(0, abs=0.01)]
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy
        assert report.latency_millis == 50
        assert report.checked_at == EPOCH + timedelta(milliseconds=50)
        assert world.bell.times("p1") == [pytest.approx(0.05, abs=0.001)]


async def test_a_first_bad_verdict_needs_the_whole_run_but_comes_within_seconds():
    world = World()
    world.prober.answers["192.0.2.1"] = failed(ProbeError.REFUSED, "refused")
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(3.5)
        assert world.report(proxy) is None
        await asyncio.sleep(1)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy
        assert (report.error, report.detail) == (ProbeError.REFUSED, "refused")
        assert len(world.bell.rung) == 1


async def test_once_judged_a_bad_proxy_is_probed_in_its_rhythm():
    world = World()
    world.prober.answers["192.0.2.1"] = failed(ProbeError.AUTH, "407")
    async with world.running():
        world.add()
        await asyncio.sleep(600)
        assert len(world.prober.sent) <= 3 + 600 / 30


async def test_a_proxy_keeps_its_rhythm():
    world = World()
    async with world.running():
        world.add()
        await asyncio.sleep(400)
        times = world.prober.times("192.0.2.1")
        assert 15 <= times[1] - times[0] <= 45
        gaps = [b - a for a, b in pairwise(times[1:])]
        assert gaps == [pytest.approx(30, abs=0.01)] * len(gaps)


async def test_a_slow_probe_does_not_shift_the_rhythm():
    world = World()
    world.prober.answers["192.0.2.1"] = ok(4000)
    async with world.running():
        world.add(health_check=HealthCheck(interval="10s"))
        await asyncio.sleep(100)
        times = world.prober.times("192.0.2.1")
        gaps = [b - a for a, b in pairwise(times[1:])]
        assert gaps == [pytest.approx(10, abs=0.01)] * len(gaps)


async def test_a_dead_proxy_is_unhealthy_within_threshold_times_interval():
    world = World()
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(100)
        died_at = world.clock.monotonic()
        world.prober.answers["192.0.2.1"] = failed()
        await asyncio.sleep(3 * 30 + 0.1)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy
        assert world.bell.times("p1")[-1] - died_at <= 90


async def test_one_failure_in_three_changes_nothing():
    world = World()
    async with world.running():
        proxy = world.add()
        for _ in range(20):
            world.prober.answers["192.0.2.1"] = ok()
            await asyncio.sleep(60)
            world.prober.answers["192.0.2.1"] = failed()
            await asyncio.sleep(30)
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy
        assert len(world.bell.rung) == 1


async def test_a_refused_notice_is_tried_again_by_the_next_probe():
    world = World()
    world.bell.accepts = False
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(1)
        assert world.report(proxy) is None
        assert len(world.bell.refused) == 1
        world.bell.accepts = True
        await asyncio.sleep(45)
        assert world.report(proxy) is not None
        assert len(world.bell.rung) == 1


async def test_a_refused_flip_that_did_not_last_is_never_shown():
    world = World()
    async with world.running():
        proxy = world.add(health_check=HealthCheck(failure_threshold=1))
        await asyncio.sleep(10)
        world.bell.accepts = False
        world.prober.answers["192.0.2.1"] = failed()
        await asyncio.sleep(45)
        assert world.bell.refused
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy
        world.prober.answers["192.0.2.1"] = ok()
        world.bell.accepts = True
        await asyncio.sleep(100)
        assert len(world.bell.rung) == 1


async def test_without_a_subscriber_nothing_is_reported():
    world = World()
    engine = HealthEngine(
        world.store,
        Ports(world.prober, world.credentials, world.recorder, world.events),
        world.clock,
        HealthSettings(targets=TargetRules(health_url=TARGET)),
    )
    proxy = world.add()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(engine.run())
        await asyncio.sleep(1)
        assert engine.report(proxy.metadata.uid) is None
        engine.subscribe(world.bell)
        await asyncio.sleep(60)
        assert engine.report(proxy.metadata.uid) is not None
        task.cancel()


@pytest.mark.parametrize(
    ("status", "reason", "answer"),
    [
        (ConditionStatus.TRUE, "ProbeSucceeded", ok(55)),
        (ConditionStatus.FALSE, "ProbeFailed", failed(ProbeError.TIMEOUT)),
        (ConditionStatus.FALSE, "AuthFailed", failed(ProbeError.AUTH)),
    ],
)
async def test_a_settled_fleet_starts_without_a_report(status, reason, answer):
    world = World()
    hosts = [f"192.0.2.{n}" for n in range(1, 101)]
    for host in hosts:
        world.add(host, host, status=settled(host, status, reason))
        world.prober.answers[host] = answer
    async with world.running():
        await asyncio.sleep(300)
        assert world.bell.rung == []
        assert all(len(world.prober.times(host)) >= 9 for host in hosts)


async def test_first_probes_of_a_settled_fleet_fill_the_interval():
    world = World()
    for n in range(1, 101):
        world.add(f"p{n}", f"192.0.2.{n}", status=settled(f"192.0.2.{n}"))
    async with world.running():
        await asyncio.sleep(30)
        seconds = [int(sent.at) for sent in world.prober.sent]
        assert len(seconds) == 100
        assert max(seconds.count(second) for second in range(30)) <= 12


async def test_a_hundred_new_proxies_are_no_burst_then_or_later():
    world = World()
    async with world.running():
        for n in range(1, 101):
            world.add(f"p{n}", f"192.0.2.{n}")
        await asyncio.sleep(90)
        at = [sent.at for sent in world.prober.sent]
        assert sum(moment < 1 for moment in at) <= 25
        assert sum(moment < 10 for moment in at) == 100
        for second in range(50, 90):
            assert sum(second <= moment < second + 1 for moment in at) <= 15


async def test_a_taken_over_verdict_needs_a_whole_run_to_flip():
    world = World()
    world.prober.answers["192.0.2.1"] = failed()
    proxy = world.add(status=settled())
    async with world.running():
        # The first probe comes anywhere in the first interval, so this many are two at most.
        await asyncio.sleep(59.9)
        assert 1 <= len(world.prober.sent) <= 2
        assert world.report(proxy) is None
        await asyncio.sleep(31)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy


async def test_a_condition_about_another_address_is_not_taken_over():
    world = World()
    world.prober.answers["192.0.2.9"] = failed()
    proxy = world.add(host="192.0.2.9", status=settled("192.0.2.1"))
    async with world.running():
        await asyncio.sleep(0.1)
        assert len(world.prober.sent) == 1
        await asyncio.sleep(90)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy


async def test_a_changed_endpoint_starts_anew():
    world = World()
    async with world.running():
        proxy = world.add(status=settled())
        await asyncio.sleep(100)
        world.prober.answers["192.0.2.2"] = failed()
        world.edit(proxy, endpoint=Endpoint(host="192.0.2.2", port=3128))
        assert world.report(proxy) is None
        await asyncio.sleep(0.1)
        assert len(world.prober.times("192.0.2.2")) == 1
        assert world.report(proxy) is None


async def test_a_replaced_instance_starts_anew():
    world = World()
    proxy = a_proxy()
    running = {"ip": "192.0.2.1", "port": 3128, "provider_id": "a"}
    async with world.running():
        proxy = world.restatus(proxy, **running)
        await asyncio.sleep(100)
        assert world.report(proxy) is not None
        proxy = world.restatus(proxy, ip=None, port=None, provider_id=None)
        assert world.report(proxy) is None
        assert key_of(proxy) not in world.recorder.probes
        await asyncio.sleep(100)
        probes = len(world.prober.sent)
        world.restatus(proxy, **running)
        await asyncio.sleep(0.1)
        assert len(world.prober.sent) == probes + 1


async def test_another_instance_at_the_same_address_starts_anew():
    world = World()
    async with world.running():
        proxy = a_proxy(status=settled(port=3128, provider_id="a"))
        world.store.put(proxy)
        await asyncio.sleep(100)
        probes = len(world.prober.sent)
        world.prober.answers["192.0.2.1"] = failed()
        # The old condition is still there: it says nothing of the new instance.
        world.restatus(proxy, provider_id="b")
        await asyncio.sleep(0.1)
        assert len(world.prober.sent) == probes + 1
        await asyncio.sleep(90)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy


async def test_a_deleted_proxy_is_forgotten_and_its_probe_dropped():
    world = World()
    world.prober.answers["192.0.2.1"] = BLACK_HOLE
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(1)
        assert world.prober.in_flight["192.0.2.1"] == 1
        world.store.remove(key_of(proxy))
        await asyncio.sleep(1)
        assert world.prober.in_flight["192.0.2.1"] == 0
        await asyncio.sleep(100)
        assert len(world.prober.sent) == 1
        assert not world.recorder.probes


async def test_a_deleting_proxy_is_not_probed():
    world = World()
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(1)
        meta = msgspec.structs.replace(proxy.metadata, deletion_timestamp=EPOCH)
        world.store.put(msgspec.structs.replace(proxy, metadata=meta))
        await asyncio.sleep(100)
        assert len(world.prober.sent) == 1
        assert world.report(proxy) is None


async def test_a_successor_of_the_same_name_inherits_nothing():
    world = World()
    async with world.running():
        first = world.add()
        await asyncio.sleep(1)
        world.prober.answers["192.0.2.1"] = failed()
        second = world.add()
        await asyncio.sleep(1)
        assert world.report(first) is None
        assert world.report(second) is None
        await asyncio.sleep(100)
        assert world.report(second) is not None


async def test_status_writes_do_not_disturb_the_rhythm():
    world = World()
    async with world.running():
        proxy = world.add()
        for _ in range(200):
            await asyncio.sleep(1)
            proxy = world.restatus(proxy, latency_millis=int(world.clock.monotonic()))
        assert 6 <= len(world.prober.sent) <= 8


@pytest.mark.parametrize(
    ("edit", "field", "value"),
    [
        ({"health_check": HealthCheck(interval="1h", url="http://b/")}, "url", "http://b/"),
        ({"health_check": HealthCheck(interval="1h", expected_status=204)}, "expected_status", 204),
        ({"health_check": HealthCheck(interval="1h", timeout="2s")}, "timeout", timedelta(0, 2)),
        ({"scheme": Scheme.HTTPS}, "scheme", Scheme.HTTPS),
        (
            {"credentials_secret_ref": SecretRef(name="s")},
            "credentials",
            Credentials("u", "p"),
        ),
    ],
)
async def test_an_edit_takes_effect_at_once(edit, field, value):
    world = World()
    async with world.running():
        proxy = world.add(health_check=HealthCheck(interval="1h"))
        await asyncio.sleep(10)
        world.credentials.known["p1"] = Credentials("u", "p")
        world.edit(proxy, **edit)
        await asyncio.sleep(0.1)
        assert len(world.prober.sent) == 2
        assert getattr(world.prober.last("192.0.2.1"), field) == value


async def test_a_shorter_interval_takes_effect_at_once():
    world = World()
    async with world.running():
        proxy = world.add(health_check=HealthCheck(interval="1h"))
        await asyncio.sleep(10)
        world.edit(proxy, health_check=HealthCheck(interval="10s"))
        await asyncio.sleep(100)
        assert len(world.prober.sent) >= 10


async def test_an_edit_ends_the_probe_under_way():
    world = World()
    world.prober.answers["192.0.2.1"] = BLACK_HOLE
    async with world.running():
        proxy = world.add(health_check=HealthCheck(timeout="20s"))
        await asyncio.sleep(1)
        world.edit(proxy, health_check=HealthCheck(url="http://b/"))
        await asyncio.sleep(1)
        assert len(world.prober.sent) == 2
        assert world.prober.most_in_flight["192.0.2.1"] == 1


async def test_an_edit_before_the_first_step_of_a_probe_loses_no_worker():
    world = World(workers=1)
    async with world.running():
        proxy = world.add(health_check=HealthCheck(interval="1h"))
        await asyncio.sleep(0)
        for n in range(5):
            proxy = world.edit(proxy, health_check=HealthCheck(interval="1h", url=f"http://{n}/"))
            await asyncio.sleep(0)
        await asyncio.sleep(10)
        assert world.prober.last("192.0.2.1").url == "http://4/"


async def test_changed_thresholds_judge_the_next_probe():
    world = World()
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(50)
        world.prober.answers["192.0.2.1"] = failed()
        world.edit(proxy, health_check=HealthCheck(failure_threshold=1))
        await asyncio.sleep(1)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy


async def test_rotated_credentials_are_used_by_the_next_probe():
    world = World()
    async with world.running():
        world.add()
        await asyncio.sleep(10)
        world.credentials.known["p1"] = Credentials("u", "new")
        await asyncio.sleep(50)
        assert world.prober.last("192.0.2.1").credentials == Credentials("u", "new")


async def test_credentials_are_read_once_a_probe():
    world = World()
    async with world.running():
        world.add()
        await asyncio.sleep(100)
        assert world.credentials.readings == len(world.prober.sent) > 2


async def test_without_its_credentials_a_proxy_is_not_healthy_though_it_would_answer():
    world = World()
    world.credentials.known["p1"] = ValueError("Secret default/s was not found")
    async with world.running():
        proxy = world.add(health_check=HealthCheck(failure_threshold=1))
        await asyncio.sleep(1)
        report = world.report(proxy)
        assert report is not None
        assert (report.is_healthy, report.error) == (False, ProbeError.AUTH)
        assert report.detail == "Secret default/s was not found"
        assert world.prober.sent == []
        assert not world.recorder.probes
        world.credentials.known["p1"] = Credentials("u", "p")
        await asyncio.sleep(60)
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy


async def test_without_a_target_there_is_nothing_to_probe():
    world = World(targets=TargetRules())
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(100)
        assert world.prober.sent == []
        assert not world.engine.has_target(proxy)
        proxy = world.edit(proxy, health_check=HealthCheck(url=TARGET))
        await asyncio.sleep(1)
        assert world.engine.has_target(proxy)
        assert world.report(proxy) is not None
        proxy = world.edit(proxy, health_check=HealthCheck())
        assert world.report(proxy) is None
        await asyncio.sleep(100)
        assert len(world.prober.sent) == 1


@pytest.mark.parametrize(
    ("allowed", "clause"),
    [
        (only("*.proxies.example"), "endpoint 192.0.2.1:3128 is not allowed"),
        (only(urls="check.example"), "healthCheck.url is not allowed"),
    ],
)
async def test_nothing_is_sent_to_a_refused_proxy_and_that_shows_at_once(allowed, clause):
    world = World(allowed=allowed)
    async with world.running():
        check = HealthCheck(url="http://10.0.0.1/", failure_threshold=5)
        proxy = world.add(health_check=check)
        await asyncio.sleep(0.2)
        report = world.report(proxy)
        assert report is not None
        assert (report.is_healthy, report.error) == (False, ProbeError.NOT_ALLOWED)
        assert clause in report.detail
        await asyncio.sleep(1000)
        assert world.prober.sent == []
        assert world.bell.times("p1") == [pytest.approx(0, abs=0.01)]
        assert not world.recorder.probes


async def test_an_edit_to_what_is_allowed_is_probed_at_once():
    world = World(allowed=only(urls="check.example"))
    async with world.running():
        proxy = world.add(health_check=HealthCheck(url="http://10.0.0.1/"))
        await asyncio.sleep(1)
        world.edit(proxy, health_check=HealthCheck(url="http://check.example/"))
        await asyncio.sleep(1)
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy


async def test_the_target_of_the_whole_fleet_is_not_on_the_list():
    world = World(allowed=only(urls="check.example"))
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(1)
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy


async def test_a_name_is_probed_within_the_networks_that_vouch_for_it():
    world = World(allowed=only("10.1.0.0/16 good.example"))
    async with world.running():
        world.add("p1", "a.example")
        world.add("p2", "good.example")
        await asyncio.sleep(1)
    assert world.prober.last("a.example").networks == (ip_network("10.1.0.0/16"),)
    assert world.prober.last("good.example").networks is None


@pytest.mark.parametrize(
    ("allowed", "host", "status", "reason"),
    [
        (only("good.example"), "a.example", ConditionStatus.TRUE, "ProbeSucceeded"),
        (only("10.1.0.0/16"), "a.example", ConditionStatus.TRUE, "ProbeSucceeded"),
        (only(), "a.example", ConditionStatus.FALSE, "NotAllowed"),
    ],
    ids=["refused now", "to be looked up", "allowed now"],
)
async def test_a_verdict_that_a_list_may_have_changed_is_not_waited_for(
    allowed, host, status, reason
):
    world = World(allowed=allowed)
    check = HealthCheck(interval="1h")
    proxy = world.add(host=host, status=settled(host, status, reason), health_check=check)
    async with world.running():
        await asyncio.sleep(1)
        assert world.prober.sent or world.report(proxy)


async def test_black_holes_leave_the_others_on_time():
    world = World()
    hosts = [f"10.0.{n // 250}.{n % 250}" for n in range(5000)]
    for n, host in enumerate(hosts):
        world.add(host, host, status=settled(host))
        if n % 104 == 0:
            world.prober.answers[host] = BLACK_HOLE
    assert len(world.prober.answers) == 49
    async with world.running():
        await asyncio.sleep(31)
        lags = sorted(world.recorder.lags)
        assert len(lags) >= 4_900
        assert lags[-1] < timedelta(seconds=1)
        assert world.prober.most_at_once <= 100
        assert max(world.prober.most_in_flight.values()) == 1


async def test_workers_bound_the_probes_under_way_and_lag_is_told():
    world = World(workers=2)
    async with world.running():
        for n in range(10):
            world.prober.answers[f"192.0.2.{n}"] = BLACK_HOLE
            world.add(f"p{n}", f"192.0.2.{n}")
        await asyncio.sleep(26)
        assert world.prober.most_at_once == 2
        assert max(world.recorder.lags) >= timedelta(seconds=15)


async def test_the_worker_of_a_proxy_that_went_takes_the_next_one():
    world = World(workers=1)
    world.prober.answers["192.0.2.1"] = BLACK_HOLE
    async with world.running():
        gone = world.add("p1", "192.0.2.1")
        world.add("p2", "192.0.2.2")
        await asyncio.sleep(1)
        assert world.prober.times("192.0.2.2") == []
        world.store.remove(key_of(gone))
        await asyncio.sleep(0.1)
        assert len(world.prober.times("192.0.2.2")) == 1


async def test_a_stuck_prober_is_cut_off():
    world = World()
    world.prober.answers["192.0.2.1"] = BLACK_HOLE
    world.prober.keeps_deadline = False
    async with world.running():
        proxy = world.add(health_check=HealthCheck(timeout="2s", failure_threshold=1))
        await asyncio.sleep(3.5)
        report = world.report(proxy)
        assert report is not None
        assert report.error is ProbeError.TIMEOUT
        assert world.prober.in_flight["192.0.2.1"] == 0


@pytest.mark.parametrize("fault", [LocalProbeError("no free descriptor"), RuntimeError("a bug")])
async def test_a_fault_of_our_own_judges_nobody(fault):
    world = World()
    async with world.running():
        proxy = world.add()
        await asyncio.sleep(10)
        world.prober.answers["192.0.2.1"] = fault
        await asyncio.sleep(300)
        report = world.report(proxy)
        assert report is not None
        assert report.is_healthy
        world.prober.answers["192.0.2.1"] = failed()
        await asyncio.sleep(91)
        report = world.report(proxy)
        assert report is not None
        assert not report.is_healthy


async def test_stopping_judges_nothing():
    world = World()
    async with world.running():
        good = world.add("p1", "192.0.2.1")
        world.prober.answers["192.0.2.2"] = BLACK_HOLE
        world.add("p2", "192.0.2.2", health_check=HealthCheck(failure_threshold=1))
        await asyncio.sleep(1)
        assert world.prober.in_flight["192.0.2.2"] == 1
    assert world.bell.times("p2") == []
    assert world.prober.in_flight["192.0.2.2"] == 0
    sent = len(world.prober.sent)
    world.store.remove(key_of(good))
    world.add("p3", "192.0.2.3")
    await asyncio.sleep(100)
    assert world.report(good) is not None
    assert len(world.prober.sent) == sent
