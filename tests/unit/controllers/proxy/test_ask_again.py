"""Accepted creates that come to nothing: asked about, few times, and never while deleting."""

from datetime import timedelta

import pytest

from proxy_operator.domain.instance import Outcome
from proxy_operator.domain.proxy import GcpBlock, Phase, ProviderName
from proxy_operator.provisioning.errors import (
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from tests.builders import a_proxy
from tests.worlds import World, a_world

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
SCHEDULE = (15 * SECOND, 60 * SECOND, 120 * SECOND)
QUOTA = QuotaExceededError("quota CPUS is exceeded")


async def a_late_world(**refusals: Exception) -> World:
    """Zones whose creates are accepted and come to nothing for that reason."""
    proxy = a_proxy(provider=ProviderName.GCP, gcp=GcpBlock(zone="a", fallback_zones=("b",)))
    world = await a_world(proxy)
    world.provider.asks_again_after = SCHEDULE
    world.provider.late_refusals = dict(refusals)
    return world


async def test_nothing_is_asked_again_in_the_first_seconds():
    world = await a_late_world(a=QUOTA)
    await world.run(14 * SECOND)
    assert world.provider.calls["create"] == 1
    assert (await world.provisioned()).message == "the instance has yet to appear"


async def test_a_quota_is_shown_as_one_and_the_zone_stays():
    world = await a_late_world(a=QUOTA)
    await world.run(MINUTE)
    row = await world.provisioned()
    assert (row.reason, row.message) == ("QuotaExceeded", str(QUOTA))
    assert (await world.proxy()).status.phase is Phase.PENDING
    assert (await world.proxy()).status.provider_id is None
    assert (await world.intent()).outcome is Outcome.QUOTA
    world.provider.late_refusals = {}
    await world.run(6 * MINUTE)
    assert [one.zone for one in world.provider.instances.values()] == ["a"]


async def test_a_stock_out_leads_to_the_next_zone():
    world = await a_late_world(a=StockOutError("zone a has none left"))
    await world.run(2 * MINUTE)
    [instance] = world.provider.instances.values()
    assert instance.zone == "b"
    assert (await world.proxy()).status.provider_id == instance.provider_id


async def test_what_can_never_be_is_latched():
    world = await a_late_world(a=PermanentProviderError("no such image"))
    await world.run(HOUR)
    assert len(world.provider.creates) == 1
    assert (await world.proxy()).status.phase is Phase.FAILED


async def test_a_create_still_under_way_is_asked_about_three_times():
    world = await a_late_world()
    world.provider.vanishing_zones = {"a"}
    await world.run(3 * MINUTE - SECOND)
    assert world.provider.calls["create"] == 4
    assert len(world.provider.creates) == 1


async def test_every_question_has_the_request_id_of_the_first():
    world = await a_late_world(a=StockOutError("none"), b=StockOutError("none"))
    await world.run(HOUR)
    ids = [one.request_id for one in world.provider.creates]
    assert len(set(ids)) == len(ids) <= 10
    assert world.provider.calls["create"] == 2 * len(ids)


async def test_a_restart_asks_once_more_at_most():
    world = await a_late_world()
    world.provider.vanishing_zones = {"a"}
    await world.run(70 * SECOND)
    assert world.provider.calls["create"] == 3
    await world.restart()
    await world.run(20 * SECOND)
    assert world.provider.calls["create"] == 4


async def test_seen_and_gone_is_asked_about_before_it_counts_as_never_appeared():
    world = await a_late_world()
    world.provider.provision_delay = HOUR
    await world.run(5 * SECOND)
    [provider_id] = world.provider.instances
    world.provider.vanish(provider_id)
    world.provider.late_refusals = {"a": QUOTA}
    await world.run(15 * SECOND)
    assert (await world.provisioned()).reason == "QuotaExceeded"


async def test_seen_and_gone_for_no_reason_counts_as_never_appeared_once_asked():
    world = await a_late_world()
    world.provider.provision_delay = HOUR
    await world.run(5 * SECOND)
    [provider_id] = world.provider.instances
    world.provider.vanish(provider_id)
    await world.run(20 * SECOND)
    assert (await world.provisioned()).reason == "InstanceNeverAppeared"


async def test_a_deletion_asks_for_nothing():
    world = await a_late_world()
    world.provider.vanishing_zones = {"a"}
    await world.run(5 * SECOND)
    await world.delete()
    await world.run(10 * MINUTE)
    assert world.provider.calls["create"] == 1
    assert await world.names() == []


async def test_an_edit_asks_about_nothing_old():
    world = await a_late_world()
    world.provider.vanishing_zones = {"a"}
    await world.run(10 * SECOND)
    gcp = GcpBlock(zone="a", machine_type="e2-small")
    await world.apply(a_proxy(provider=ProviderName.GCP, gcp=gcp))
    await world.run(12 * SECOND)
    assert len(world.provider.creates) == world.provider.calls["create"] == 2


async def test_an_answer_that_is_lost_is_asked_for_at_the_next_time():
    world = await a_late_world(a=QUOTA)
    await world.run(10 * SECOND)
    world.provider.fail("create", TransientProviderError("no answer"))
    errors = await world.run(30 * SECOND)
    assert [type(one) for one in errors] == [TransientProviderError]
    assert (await world.provisioned()).reason == "Provisioning"
    await world.run(30 * SECOND)
    assert (await world.provisioned()).reason == "QuotaExceeded"
