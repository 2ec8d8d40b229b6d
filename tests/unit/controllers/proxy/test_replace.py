"""An instance that serves goes only when another may follow it."""

from datetime import timedelta

import pytest

from proxy_operator.controllers.proxy.context import Intervals
from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.proxy import GcpBlock, Phase, ProviderName, SecretRef
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from tests.builders import a_proxy, a_secret
from tests.worlds import World, a_running_world, a_world

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

MINUTE = timedelta(minutes=1)
REFUSALS = [
    (PermanentProviderError("no such image"), "PermanentError"),
    (EnvironmentProviderError("squid is not installed"), "PermanentError"),
    (QuotaExceededError("the quota is used up"), "QuotaExceeded"),
    (StockOutError("none left"), "QuotaExceeded"),
]


async def assert_kept(world: World, message: str) -> None:
    """The first instance serves, and its Proxy says why it is still the first."""
    assert len(world.provider.creates) == 1
    assert world.provider.deletes == []
    proxy, row = await world.proxy(), await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.TRUE, "Created")
    assert row.message == message
    assert proxy.status.phase is Phase.READY
    assert proxy.status.port == 4000
    assert proxy.status.observed_generation == proxy.metadata.generation


@pytest.mark.parametrize(("error", "reason"), REFUSALS)
async def test_an_edit_that_would_be_refused_destroys_nothing(error: Exception, reason: str):
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", error, times=None)
    await world.apply(a_proxy(port=4001))
    result = await world.one_pass()
    assert result.requeue_after == Intervals().quota_retry
    assert await world.run(20 * MINUTE) == []
    await assert_kept(world, f"{reason}: {error}")
    assert world.events.reasons().count("ReplacementBlocked") == 1
    assert world.provider.calls["check"] <= 6


async def test_a_refused_edit_is_carried_out_once_it_can_be():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", EnvironmentProviderError("the port is taken"), times=2)
    await world.apply(a_proxy(port=4001))
    await world.run(12 * MINUTE)
    assert (await world.proxy()).status.port == 4001
    assert (await world.provisioned()).message == ""
    assert len(world.provider.creates) == 2


async def test_the_edit_taken_back_leaves_no_trace():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", PermanentProviderError("never"), times=None)
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    await world.apply(a_proxy(port=4000))
    await world.one_pass()
    await assert_kept(world, "")


async def test_the_next_edit_is_tried_at_once():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", PermanentProviderError("never"))
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    await world.apply(a_proxy(port=4002))
    await world.run(MINUTE)
    assert (await world.proxy()).status.port == 4002


async def test_no_answer_is_backed_off_and_destroys_nothing():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", TransientProviderError("no answer"))
    await world.apply(a_proxy(port=4001))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await assert_kept(world, "ProviderError: no answer")
    await world.run(MINUTE)
    assert (await world.proxy()).status.port == 4001


async def test_a_rotation_that_would_be_refused_destroys_nothing():
    proxy = a_proxy(port=4000, credentials_secret_ref=SecretRef(name="s1"))
    world = await a_running_world(a_secret(), proxy)
    world.provider.fail("check", QuotaExceededError("the quota is used up"), times=None)
    await world.apply(a_secret(username=b"crawler", password=b"other"))
    await world.run(MINUTE)
    await assert_kept(world, "QuotaExceeded: the quota is used up")


async def test_health_is_shown_while_an_edit_is_refused():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", PermanentProviderError("never"), times=None)
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    await world.report(is_healthy=False, detail="the proxy refused the connection")
    await world.one_pass()
    assert (await world.proxy()).status.phase is Phase.UNHEALTHY
    assert (await world.provisioned()).message == "PermanentError: never"


async def test_an_instance_on_its_way_is_kept_too_and_comes_to_serve():
    world = await a_world(a_proxy(port=4000))
    await world.run(timedelta(seconds=3))
    world.provider.fail("check", PermanentProviderError("never"), times=None)
    await world.apply(a_proxy(port=4001))
    await world.run(MINUTE)
    await world.report()
    await world.one_pass()
    await assert_kept(world, "PermanentError: never")


async def test_an_instance_that_serves_nobody_is_not_kept():
    world = await a_running_world(a_proxy(port=4000))
    [pid] = world.provider.instances
    world.provider.fail("check", PermanentProviderError("never"), times=None)
    world.provider.set_state(pid, InstanceState.STOPPED)
    await world.apply(a_proxy(port=4001))
    await world.run(MINUTE)
    assert (await world.proxy()).status.port == 4001


async def test_a_refused_edit_does_not_hold_up_deletion():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.fail("check", PermanentProviderError("never"), times=None)
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    await world.delete()
    await world.run(MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_one_zone_without_stock_is_no_refusal_while_another_has_some():
    def in_zones(machine: str):
        block = GcpBlock(zone="a", fallback_zones=("b",), machine_type=machine)
        return a_proxy(provider=ProviderName.GCP, gcp=block)

    world = await a_running_world(in_zones("small"))
    world.provider.fail("check", StockOutError("none left in a"))
    await world.apply(in_zones("big"))
    await world.run(MINUTE)
    assert len(world.provider.creates) == 2
    assert len(world.provider.deletes) == 1
