"""The switches of the fake cloud; the contract suite holds the rest."""

import asyncio
from datetime import timedelta

import pytest

from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.names import owner_labels
from proxy_operator.domain.proxy import GcpBlock, ProxySpec
from proxy_operator.provisioning.errors import (
    InstanceNotFoundError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_clock, a_create_request

pytestmark = pytest.mark.looptime(start=0)


@pytest.fixture
def cloud() -> FakeProvider:
    return FakeProvider(a_clock(), zones=("a", "b"))


async def state(cloud: FakeProvider, provider_id: str) -> InstanceState | None:
    try:
        return (await cloud.get(provider_id)).state
    except InstanceNotFoundError:
        return None


async def test_an_instance_appears_then_runs_on_the_clock(cloud: FakeProvider):
    cloud.appear_delay = timedelta(seconds=5)
    provider_id = await cloud.create(a_create_request(zone="a"))
    assert await state(cloud, provider_id) is None
    assert (await cloud.list_by_tag()).items == ()
    assert list(cloud.instances) == [provider_id]
    await asyncio.sleep(5)
    assert await state(cloud, provider_id) is InstanceState.PROVISIONING
    await asyncio.sleep(10)
    assert (await cloud.get(provider_id)).ip == "10.0.0.1"


async def test_deleting_what_has_not_appeared_does_not_stop_it(cloud: FakeProvider):
    cloud.appear_delay = timedelta(seconds=5)
    provider_id = await cloud.create(a_create_request(zone="a"))
    await cloud.delete(provider_id)
    assert cloud.deletes == []
    await asyncio.sleep(5)
    assert await state(cloud, provider_id) is InstanceState.PROVISIONING


async def test_a_vanishing_zone_accepts_and_makes_nothing(cloud: FakeProvider):
    cloud.vanishing_zones = {"a"}
    request = a_create_request(zone="a")
    await cloud.create(request)
    await asyncio.sleep(3600)
    assert cloud.instances == {}
    assert [(one.request_id, one.zone) for one in cloud.creates] == [(request.request_id, "a")]


async def test_a_zone_can_be_out_of_stock(cloud: FakeProvider):
    cloud.stocked_out_zones = {"a"}
    with pytest.raises(StockOutError, match="zone a"):
        await cloud.create(a_create_request(zone="a"))
    assert cloud.creates == []
    await cloud.create(a_create_request(zone="b"))
    assert len(cloud.creates) == 1


async def test_faults_come_in_order_and_run_out(cloud: FakeProvider):
    cloud.fail("create", QuotaExceededError("full"), times=2)
    cloud.fail("create", PermanentProviderError("no"))
    for expected in (QuotaExceededError, QuotaExceededError, PermanentProviderError):
        with pytest.raises(expected):
            await cloud.create(a_create_request(zone="a"))
    await cloud.create(a_create_request(zone="a"))
    assert cloud.calls["create"] == 4
    assert len(cloud.creates) == 1


async def test_a_fault_without_end_lasts_until_healed(cloud: FakeProvider):
    cloud.fail("get", TransientProviderError("down"), times=None)
    for _ in range(3):
        with pytest.raises(TransientProviderError):
            await cloud.get("zones/a/instances/x")
    cloud.heal("get")
    assert await state(cloud, "zones/a/instances/x") is None


async def test_a_lost_reply_is_a_deed_done(cloud: FakeProvider):
    cloud.lose_replies("create")
    request = a_create_request(zone="a")
    with pytest.raises(TransientProviderError):
        await cloud.create(request)
    (provider_id,) = cloud.instances
    cloud.lose_replies("delete")
    with pytest.raises(TransientProviderError):
        await cloud.delete(provider_id)
    assert cloud.instances == {}


async def test_a_deletion_takes_time_and_polls(cloud: FakeProvider):
    cloud.terminating_for = timedelta(seconds=30)
    cloud.terminating_polls = 2
    provider_id = await cloud.create(a_create_request(zone="a"))
    await cloud.delete(provider_id)
    await cloud.delete(provider_id)
    assert len(cloud.deletes) == 1
    for _ in range(3):
        assert await state(cloud, provider_id) is InstanceState.TERMINATING
    await asyncio.sleep(30)
    assert await state(cloud, provider_id) is None


async def test_states_can_be_forced_and_instances_taken_away(cloud: FakeProvider):
    provider_id = await cloud.create(a_create_request(zone="a"))
    cloud.set_state(provider_id, InstanceState.STOPPED)
    await asyncio.sleep(60)
    assert await state(cloud, provider_id) is InstanceState.STOPPED
    cloud.set_state(provider_id, None)
    assert await state(cloud, provider_id) is InstanceState.RUNNING
    cloud.vanish(provider_id)
    assert await state(cloud, provider_id) is None
    assert cloud.deletes == []


async def test_a_planted_instance_is_as_old_and_foreign_as_asked(cloud: FakeProvider):
    labels = owner_labels(uid="u", cluster_id="theirs", spec_hash="h")
    provider_id = cloud.plant("proxy-x", labels, zone="a", age=timedelta(minutes=10))
    instance = await cloud.get(provider_id)
    assert instance.state is InstanceState.RUNNING
    assert instance.created_at == a_clock().now() - timedelta(minutes=10)
    assert (await cloud.list_by_tag()).items == ()
    with pytest.raises(PermanentProviderError):
        await cloud.delete(provider_id)
    assert cloud.instances_of("u") == [instance]


async def test_an_incomplete_list_hides_zones_and_says_so(cloud: FakeProvider):
    shown = await cloud.create(a_create_request(zone="a"))
    await cloud.create(a_create_request(zone="b"))
    cloud.is_list_complete = False
    cloud.hidden_zones = {"b"}
    listing = await cloud.list_by_tag()
    assert [one.provider_id for one in listing.items] == [shown]
    assert not listing.complete


def test_zones_are_those_of_the_spec_when_it_names_some(cloud: FakeProvider):
    gcp = GcpBlock(zone="x", fallback_zones=("y", "x"))
    assert cloud.placements(ProxySpec(gcp=gcp)) == ("x", "y")
    assert cloud.placements(ProxySpec()) == ("a", "b")


async def test_a_survey_shows_what_has_an_owner_and_says_what_it_cannot_see(cloud: FakeProvider):
    labels = owner_labels(uid="uid-1", cluster_id="other", spec_hash="0" * 32)
    seen = cloud.plant("seen", labels, zone="a")
    cloud.plant("hidden", labels, zone="b")
    cloud.plant("somebody", {"team": "x"}, zone="a")
    cloud.is_list_complete, cloud.hidden_zones = False, {"b"}
    found = await cloud.list_all()
    assert ([one.provider_id for one in found.items], found.complete) == ([seen], False)
    cloud.fail("list_all", TransientProviderError("no answer"))
    with pytest.raises(TransientProviderError):
        await cloud.list_all()
