"""Each single call of a reconcile fails, is late, loses its reply, or is the process's last one.

Whatever happens: the world converges to one instance for each Proxy, none lost, none left.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from proxy_operator.domain.names import instance_name
from proxy_operator.domain.proxy import GcpBlock, ProviderName, SecretRef
from proxy_operator.provisioning.errors import TransientProviderError
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.testing.faults import Fault
from tests.builders import EPOCH, a_manifest, a_proxy, a_secret
from tests.faults.processes import Lives, assert_converged, settle
from tests.worlds import World

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

SPAN = timedelta(minutes=25)
Scenario = Callable[[World], Awaitable[None]]


def in_zone(zone: str, *fallbacks: str):
    return a_proxy(provider=ProviderName.GCP, gcp=GcpBlock(zone=zone, fallback_zones=fallbacks))


def with_credentials():
    return a_proxy(credentials_secret_ref=SecretRef(name="s1"))


async def creation(world: World) -> None:
    await world.objects.apply(a_manifest(a_proxy()))


async def slow_creation(world: World) -> None:
    world.provider.appear_delay = timedelta(seconds=40)
    await world.objects.apply(a_manifest(a_proxy()))


async def a_fallback_zone(world: World) -> None:
    world.provider.stocked_out_zones = {"a"}
    await world.objects.apply(a_manifest(in_zone("a", "b")))


async def no_appearance(world: World) -> None:
    world.provider.vanishing_zones = {"a"}
    await world.objects.apply(a_manifest(in_zone("a", "b")))


async def replacement(world: World) -> None:
    await running(world, a_proxy(port=4000))
    world.provider.terminating_for = timedelta(seconds=12)
    await world.objects.apply(a_manifest(a_proxy(port=4001)))


async def another_zone(world: World) -> None:
    await running(world, in_zone("a"))
    world.provider.terminating_for = timedelta(seconds=12)
    await world.objects.apply(a_manifest(in_zone("b")))


async def rotation(world: World) -> None:
    await running(world, a_secret(), with_credentials())
    await world.objects.apply(a_manifest(a_secret(username=b"crawler", password=b"other")))


async def loss(world: World) -> None:
    await running(world, a_proxy())
    for provider_id in [*world.provider.instances]:
        world.provider.vanish(provider_id)


async def deletion(world: World) -> None:
    await running(world, a_proxy())
    world.provider.terminating_for = timedelta(seconds=12)
    await world.delete()


async def a_successor(world: World) -> None:
    """Deleted and applied again under the same name before the first is gone."""
    await running(world, a_proxy(), a_proxy("p2"))
    world.provider.terminating_for = timedelta(seconds=12)
    await world.delete()
    await world.delete("p2")


SCENARIOS = [
    creation,
    slow_creation,
    a_fallback_zone,
    no_appearance,
    replacement,
    another_zone,
    rotation,
    loss,
    deletion,
    a_successor,
]


async def running(world: World, *objects) -> None:
    await world.restart()
    for obj in objects:
        await world.apply(obj)
    for obj in objects:
        if hasattr(obj, "spec"):
            await world.run(timedelta(minutes=1), obj.metadata.name)


async def play(scenario: Scenario, plan) -> tuple[World, Lives]:
    world = World()
    world.clock = LoopClock(EPOCH)
    await scenario(world)
    return world, await settle(world, plan, SPAN)


async def test_the_scenarios_converge_undisturbed():
    for scenario in SCENARIOS:
        world, lives = await play(scenario, None)
        await assert_converged(world)
        assert lives.calls, scenario.__name__


@pytest.mark.parametrize("fault", [*Fault], ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_one_call_goes_wrong(scenario: Scenario, fault: Fault):
    _, undisturbed = await play(scenario, None)
    for number, call in enumerate(undisturbed.calls[:60]):
        world, _ = await play(scenario, {number: fault})
        try:
            await assert_converged(world)
        except AssertionError as err:
            raise AssertionError(f"{fault.name} of call {number}, {call}: {err}") from err


async def test_a_created_instance_bears_the_name_of_its_proxy():
    world, _ = await play(creation, None)
    proxy = await world.proxy()
    [made] = world.provider.creates
    assert instance_name(proxy.metadata.uid) in made.provider_id


async def test_a_create_that_keeps_failing_backs_off():
    """The operator's own write of the intent must not bypass the backoff."""
    world = World()
    world.provider.fail("create", TransientProviderError("no answer"), times=None)
    await world.objects.apply(a_manifest(a_proxy()))
    await settle(world, None, timedelta(hours=1))
    # 5 ms doubling to 5 m: some sixteen until the cap, then one every five minutes.
    assert 20 <= world.provider.calls["create"] <= 35
