"""What a cloud does to the bill: the real reconciler and provider, on a fake Compute Engine."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from proxy_operator.adapters.providers.gcp.api import ComputeApi
from proxy_operator.adapters.providers.gcp.provider import GcpProvider
from proxy_operator.domain.proxy import Phase, ProviderName
from proxy_operator.provisioning.timed import TimedProvider
from tests.builders import a_proxy
from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.faults import Delay, FailOperation, LoseReply, Refuse
from tests.fakes.compute.refusals import forbidden, pool_exhausted, quota_exceeded, rate_limited
from tests.fakes.compute.strangers import change_address, lose_address, preempt, vanish
from tests.gcp_worlds import A, B, GcpWorld, a_gcp_proxy, a_gcp_world, a_provider
from tests.worlds import CLUSTER

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


async def a_running_world(*proxies, **fields) -> GcpWorld:
    world = await a_gcp_world(*proxies, **fields)
    for proxy in proxies:
        await world.run(MINUTE, proxy.metadata.name)
        assert (await world.provisioned(proxy.metadata.name)).reason == "Created"
    return world


async def test_a_proxy_comes_to_run_and_leaves_nothing():
    world = await a_running_world(a_gcp_proxy())
    proxy = await world.proxy()
    [machine] = world.cloud.machines()
    assert (proxy.status.ip, proxy.status.port) == (machine.nat_ip, 3128)
    assert proxy.status.provider_id == f"zones/{A}/instances/{machine.name}"
    await world.delete()
    await world.run(MINUTE)
    assert await world.names() == []
    assert world.books.alive() == []
    assert len(world.books.deletes) == len(world.books.inserts) == 1
    assert world.books.violations == []


@pytest.mark.parametrize("is_seen", [False, True], ids=["never seen", "seen and gone"])
async def test_a_quota_of_the_operation_is_no_endless_loop(is_seen):
    world = await a_gcp_world(a_gcp_proxy())
    fault = FailOperation("QUOTA_EXCEEDED", after=10 * SECOND, is_seen=is_seen)
    world.cloud.faults.add(fault, "insert")
    await world.run(HOUR)
    assert (await world.provisioned()).reason == "QuotaExceeded"
    assert 2 <= len(world.books.inserts) <= 10
    assert {one.zone for one in world.books.inserts} == {A}
    world.cloud.faults.clear()
    await world.run(HOUR)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.alive()) == 1


async def test_a_quota_said_at_once_is_shown_and_waited_for():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(Refuse(quota_exceeded()), "insert")
    await world.run(30 * MINUTE)
    row = await world.provisioned()
    assert row.reason == "QuotaExceeded"
    assert world.books.inserts == []
    calls = Counter(one.method for one in world.books.calls)
    assert calls["insert"] <= 10


async def test_a_stock_out_of_the_operation_lands_in_the_next_zone():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(FailOperation(), "insert", zone=A)
    await world.run(3 * MINUTE)
    assert world.zones() == [B]
    assert f"zones/{B}/" in ((await world.proxy()).status.provider_id or "")


async def test_a_stock_out_said_at_once_lands_in_the_next_zone():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(Refuse(pool_exhausted(A)), "insert", zone=A)
    await world.run(2 * MINUTE)
    assert world.zones() == [B]


async def test_a_zone_that_had_none_is_skipped_by_the_others_for_a_while():
    world = await a_gcp_world(*(a_gcp_proxy(f"p{n}") for n in range(5)))
    world.cloud.faults.add(Refuse(pool_exhausted(A)), "insert", zone=A)
    await world.run(SECOND, "p0")
    for n in range(1, 5):
        await world.run(SECOND, f"p{n}")
    tried = [one for one in world.books.calls if (one.method, one.zone) == ("insert", A)]
    assert len(tried) == 1


async def test_stock_out_everywhere_is_few_inserts_and_one_instance_at_the_end():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(FailOperation(), "insert")
    await world.run(HOUR)
    assert len({one.request_id for one in world.books.inserts}) <= 10
    world.cloud.faults.clear()
    await world.run(2 * HOUR)
    assert len(world.books.alive()) == 1
    assert world.books.violations == []


async def test_two_hundred_proxies_in_one_drift_cycle_are_a_few_lists():
    names = [f"p{n}" for n in range(200)]
    world = await a_gcp_world(*(a_gcp_proxy(name) for name in names))
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(world.run(2 * MINUTE, name))
    assert len(world.zones()) == 200
    before = len(world.books.calls)
    async with asyncio.TaskGroup() as group:
        for name in names:
            group.create_task(world.run(MINUTE, name))
    calls = Counter(one.method for one in world.books.calls[before:])
    assert set(calls) == {"aggregatedList"}
    assert calls["aggregatedList"] <= 4


async def test_a_restart_with_settled_proxies_changes_nothing_and_reads_little():
    names = [f"p{n}" for n in range(20)]
    world = await a_running_world(*(a_gcp_proxy(name) for name in names))
    await world.restart()
    before = len(world.books.calls)
    for name in names:
        await world.one_pass(name)
    assert Counter(one.method for one in world.books.calls[before:]) == {"aggregatedList": 1}


async def test_a_create_whose_reply_was_lost_is_one_instance():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(LoseReply(), "insert", times=1)
    await world.run(2 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.inserts) == 1
    assert len(world.zones()) == 1


async def test_a_create_whose_reply_was_lost_is_found_by_the_deletion():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(LoseReply(), "insert", times=1)
    await world.run(SECOND / 2)
    await world.restart()
    await world.delete()
    await world.run(10 * MINUTE)
    assert await world.names() == []
    assert len(world.books.inserts) == 1
    assert world.books.alive() == []


async def test_a_create_whose_reply_was_lost_and_an_edit_of_the_zone():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(LoseReply(), "insert", times=1)
    await world.run(SECOND / 2)
    await world.apply(a_gcp_proxy(zone=B, fallback_zones=()))
    await world.run(15 * MINUTE)
    assert world.zones() == [B]
    assert len(world.books.alive()) == 1


async def test_a_zone_edit_of_a_running_proxy():
    world = await a_running_world(a_gcp_proxy())
    await world.apply(a_gcp_proxy(zone=B, fallback_zones=()))
    await world.run(5 * MINUTE)
    assert world.zones() == [B]
    assert len(world.books.alive()) == 1
    assert f"zones/{B}/" in ((await world.proxy()).status.provider_id or "")


async def test_ten_minutes_without_rights_leave_a_fleet_as_it_is():
    world = await a_running_world(a_gcp_proxy())
    await world.report()
    await world.one_pass()
    rule = world.cloud.faults.add(Refuse(forbidden("compute.instances.get")))
    await world.run(10 * MINUTE)
    row = await world.provisioned()
    assert (row.status, row.reason) == ("True", "Created")
    assert "may not" in row.message or "forbidden" in row.message
    assert (await world.proxy()).status.phase is Phase.READY
    world.cloud.faults.remove(rule)
    await world.run(6 * MINUTE)
    assert (await world.provisioned()).message == ""
    assert len(world.books.inserts) == 1


async def test_rights_to_create_that_come_back_need_no_edit():
    world = await a_gcp_world(a_gcp_proxy())
    rule = world.cloud.faults.add(Refuse(forbidden()), "insert")
    await world.run(10 * MINUTE)
    assert (await world.proxy()).status.phase is Phase.FAILED
    world.cloud.faults.remove(rule)
    await world.run(6 * MINUTE)
    assert (await world.provisioned()).reason == "Created"


@pytest.mark.parametrize("fault", [None, LoseReply()], ids=["answered", "reply lost"])
async def test_a_zone_that_does_not_exist_holds_up_neither_deletion_nor_correction(fault):
    world = await a_gcp_world(*(a_gcp_proxy(name, zone="mars-north1-a") for name in ("p1", "p2")))
    if fault is not None:
        world.cloud.faults.add(fault, "insert", times=2)
    for name in ("p1", "p2"):
        await world.run(MINUTE, name)
        assert (await world.proxy(name)).status.phase is Phase.FAILED
        assert "mars-north1-a" in (await world.provisioned(name)).message
    await world.delete("p1")
    await world.run(10 * MINUTE, "p1")
    await world.apply(a_gcp_proxy("p2", zone=A))
    await world.run(10 * MINUTE, "p2")
    assert await world.names() == ["p2"]
    assert (await world.provisioned("p2")).reason == "Created"
    assert world.zones() == [A]


async def test_an_edit_to_a_zone_that_does_not_exist_costs_no_instance():
    world = await a_running_world(a_gcp_proxy())
    await world.apply(a_gcp_proxy(zone="mars-north1-a", fallback_zones=()))
    await world.run(10 * MINUTE)
    row = await world.provisioned()
    assert (row.status, row.reason) == ("True", "Created")
    assert "mars-north1-a" in row.message
    assert world.zones() == [A]


async def test_an_operator_for_another_project_takes_no_instance_for_gone():
    world = await a_running_world(a_gcp_proxy("p1"), a_gcp_proxy("p2"))
    here = world.registry.provider
    world.cloud.conduct.projects.add("elsewhere")
    api = ComputeApi(world.session, "elsewhere")
    world.registry.provider = GcpProvider(api, cluster_id=CLUSTER, clock=world.clock)
    await world.delete("p2")
    for name in ("p1", "p2"):
        await world.run(10 * MINUTE, name)
        assert "'fake-project'" in (await world.provisioned(name)).message
    assert await world.names() == ["p1", "p2"]
    assert (await world.provisioned("p1")).reason == "Created"
    assert len(world.books.inserts) == 2
    world.registry.provider = here
    for name in ("p1", "p2"):
        await world.run(10 * MINUTE, name)
    assert await world.names() == ["p1"]
    assert (await world.provisioned("p1")).message == ""
    assert len(world.books.alive()) == 1


async def test_an_operator_with_another_cluster_id_takes_no_instance_for_gone():
    world = await a_running_world(a_gcp_proxy())
    world.cluster_id = "another"
    await world.restart()
    await world.one_pass()
    assert f"'{CLUSTER}'" in (await world.provisioned()).message
    await world.delete()
    await world.run(10 * MINUTE)
    assert await world.names() == ["p1"]
    assert len(world.books.alive()) == 1
    world.cluster_id = CLUSTER
    await world.restart()
    await world.run(10 * MINUTE)
    assert await world.names() == []
    assert world.books.alive() == []


async def test_a_proxy_restored_from_a_backup_is_no_longer_bound():
    world = await a_running_world(a_gcp_proxy())
    restored = await world.proxy()
    await world.delete()
    await world.run(10 * MINUTE)
    copied = {"annotations": restored.metadata.annotations}
    await world.apply(a_proxy(provider=ProviderName.GCP, gcp=restored.spec.gcp, meta=copied))
    world.cluster_id = "another"
    await world.restart()
    await world.run(2 * MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_a_create_that_was_refused_binds_to_no_project():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(Refuse(quota_exceeded()), "insert", times=1)
    await world.run(SECOND)
    world.cloud.conduct.projects.add("elsewhere")
    api = ComputeApi(world.session, "elsewhere")
    world.registry.provider = GcpProvider(api, cluster_id=CLUSTER, clock=world.clock)
    await world.run(10 * MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_a_rate_limit_is_waited_out_without_a_second_instance():
    world = await a_gcp_world(a_gcp_proxy())
    world.cloud.faults.add(Refuse(rate_limited()), times=20)
    await world.run(3 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.inserts) == 1


async def test_a_spot_instance_that_is_taken_is_made_anew():
    world = await a_running_world(a_gcp_proxy(spot=True))
    preempt(world.cloud, world.cloud.machines()[0])
    await world.run(4 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.inserts) == 2
    assert len(world.books.alive()) == 1


async def test_an_instance_that_vanishes_is_made_anew():
    world = await a_running_world(a_gcp_proxy())
    vanish(world.cloud, world.cloud.machines()[0])
    await world.run(4 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.inserts) == 2


async def test_an_address_that_changes_or_goes_is_shown():
    world = await a_running_world(a_gcp_proxy())
    [machine] = world.cloud.machines()
    new = change_address(world.cloud, machine)
    await world.run(2 * MINUTE)
    assert (await world.proxy()).status.ip == new
    lose_address(world.cloud, machine)
    await world.run(2 * MINUTE)
    assert (await world.provisioned()).reason == "Provisioning"
    assert (await world.proxy()).status.ip is None
    assert len(world.books.inserts) == 1


async def test_a_zone_that_answers_nothing_loses_no_instance():
    world = await a_running_world(a_gcp_proxy())
    world.cloud.conduct.unreachable = {A}
    await world.run(10 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    world.cloud.conduct.unreachable = set()
    await world.run(2 * MINUTE)
    assert len(world.books.inserts) == 1


async def test_a_slow_delete_is_asked_for_once():
    conduct = Conduct()
    conduct.timing.stop = 3 * MINUTE
    world = await a_running_world(a_gcp_proxy(), conduct=conduct)
    await world.delete()
    await world.run(5 * MINUTE)
    assert await world.names() == []
    assert [one.method for one in world.books.calls].count("delete") == 1


@pytest.mark.parametrize("memory", [None, timedelta()], ids=["remembers requests", "does not"])
async def test_a_create_that_lands_late_behind_its_successor_is_found(memory):
    world = await a_gcp_world(a_gcp_proxy(), conduct=Conduct(request_memory=memory))
    bounded = TimedProvider(a_provider(world.session, CLUSTER, world.clock), 30 * SECOND)
    world.registry.provider = bounded
    for late in (50, 100):
        world.cloud.faults.add(Delay(before=late * SECOND), "insert", times=1)
    await world.run(75 * SECOND)
    assert (await world.proxy()).status.provider_id is not None
    assert len(world.books.alive()) == 1
    await world.delete()
    await world.run(15 * MINUTE)
    assert await world.names() == []
    assert world.books.alive() == []
    assert len(world.books.inserts) == (1 if memory is None else 2)


async def test_a_server_that_remembers_no_request_ids_gets_no_second_instance():
    conduct = Conduct(request_memory=timedelta())
    conduct.timing.appears = 40 * SECOND
    conduct.timing.stages = conduct.timing.runs = 45 * SECOND
    world = await a_gcp_world(a_gcp_proxy(), conduct=conduct)
    world.cloud.faults.add(Delay(after=5 * SECOND), "insert", times=1)
    await world.run(10 * MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert len(world.books.alive()) == 1
