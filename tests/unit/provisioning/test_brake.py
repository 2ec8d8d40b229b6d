"""The operator's own limits: never more than allowed, and everybody is told why he waits."""

import asyncio
from datetime import timedelta
from unittest.mock import AsyncMock

import msgspec
import pytest

from proxy_operator.domain.instance import InstanceState
from proxy_operator.provisioning.brake import BrakedProvider, BrakeLimits
from proxy_operator.provisioning.errors import (
    InstanceNotFoundError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.testing.fake_provider import FakeProvider
from tests.builders import a_clock, a_create_request, a_proxy
from tests.worlds import CLUSTER, World, a_world

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

MINUTE = timedelta(minutes=1)


def a_fake(**fields) -> FakeProvider:
    return FakeProvider(a_clock(), cluster_id=CLUSTER, **fields)


def braked(fake: FakeProvider, most: int | None = None, per_minute: int | None = None):
    return BrakedProvider(fake, BrakeLimits(most, per_minute), a_clock())


async def refused(provider: BrakedProvider, request=None) -> QuotaExceededError:
    with pytest.raises(QuotaExceededError) as caught:
        await provider.create(request or a_create_request())
    return caught.value


class TestMaxInstances:
    async def test_the_last_place_is_given_once(self):
        fake = a_fake()
        provider = braked(fake, most=2)
        fake.latency = timedelta(seconds=1)
        answers = await asyncio.gather(
            *(provider.create(a_create_request()) for _ in range(5)), return_exceptions=True
        )
        assert len(fake.instances) == 2
        assert sum(isinstance(one, QuotaExceededError) for one in answers) == 3

    async def test_the_refusal_names_the_limit(self):
        provider = braked(a_fake(), most=1)
        await provider.create(a_create_request())
        error = await refused(provider)
        assert str(error) == "the operator's own limit --max-instances=1 is reached"
        assert error.retry_after is None

    async def test_what_exists_is_taken_over_at_the_limit(self):
        fake = a_fake()
        request = a_create_request()
        provider_id = await fake.create(request)
        await fake.create(a_create_request())
        provider = braked(fake, most=1)
        assert await provider.create(request) == provider_id

    async def test_an_instance_that_has_yet_to_appear_counts(self):
        fake = a_fake()
        fake.appear_delay = timedelta(seconds=30)
        provider = braked(fake, most=1)
        await provider.create(a_create_request())
        await refused(provider)

    async def test_an_instance_that_can_no_longer_appear_does_not(self):
        fake = a_fake(zones=("a",))
        fake.vanishing_zones = {""}
        provider = braked(fake, most=1)
        await provider.create(a_create_request())
        await asyncio.sleep(fake.appears_within.total_seconds())
        fake.vanishing_zones = set()
        await provider.create(a_create_request())

    async def test_a_create_of_which_nothing_came_gives_its_place_back(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        fake.fail("create", StockOutError("none left"))
        with pytest.raises(StockOutError):
            await provider.create(a_create_request())
        await provider.create(a_create_request())

    async def test_a_create_without_an_answer_keeps_its_place(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        fake.fail("create", TransientProviderError("no answer"))
        with pytest.raises(TransientProviderError):
            await provider.create(a_create_request())
        await refused(provider)

    async def test_a_late_refusal_gives_the_place_back(self):
        fake = a_fake()
        fake.late_refusals = {"": StockOutError("none left")}
        provider = braked(fake, most=1)
        request = a_create_request()
        await provider.create(request)
        with pytest.raises(StockOutError):
            await provider.create(msgspec.structs.replace(request, is_repeated=True))
        fake.late_refusals = {}
        await provider.create(a_create_request())

    async def test_asking_again_is_allowed_at_the_limit(self):
        provider = braked(a_fake(), most=1)
        request = a_create_request()
        await provider.create(request)
        await provider.create(msgspec.structs.replace(request, is_repeated=True))

    async def test_an_incomplete_list_counts_what_was_known(self):
        fake = a_fake()
        provider = braked(fake, most=2)
        for name in ("a", "b"):
            fake.plant(name, a_create_request().labels, zone=name)
        await refused(provider)
        await asyncio.sleep(31)
        fake.is_list_complete, fake.hidden_zones = False, {"a", "b"}
        await refused(provider)

    async def test_what_is_stopped_or_going_counts(self):
        fake = a_fake()
        fake.plant("a", a_create_request().labels, state=InstanceState.STOPPED)
        await refused(braked(fake, most=1))

    async def test_a_full_provider_is_not_listed_for_everybody_who_waits(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        await provider.create(a_create_request())
        before = fake.calls["list_by_tag"]
        for _ in range(100):
            await refused(provider)
        assert fake.calls["list_by_tag"] == before + 1

    async def test_there_is_room_again_once_one_has_gone(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        provider_id = await provider.create(a_create_request())
        await refused(provider)
        await provider.delete(provider_id)
        await asyncio.sleep(31)
        await provider.create(a_create_request())

    async def test_there_is_room_again_however_often_others_ask(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        provider_id = await provider.create(a_create_request())
        await refused(provider)
        await provider.delete(provider_id)
        for _ in range(3):
            await asyncio.sleep(9)
            await refused(provider)
        await asyncio.sleep(9)
        await provider.create(a_create_request())

    async def test_there_is_room_as_soon_as_one_was_found_gone(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        provider_id = await provider.create(a_create_request())
        await refused(provider)
        await provider.delete(provider_id)
        with pytest.raises(InstanceNotFoundError):
            await provider.get(provider_id)
        await provider.create(a_create_request())

    async def test_a_place_that_was_left_is_given_only_by_a_new_list(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        provider_id = await provider.create(a_create_request())
        await refused(provider)
        fake.plant("another", a_create_request().labels)
        await provider.delete(provider_id)
        with pytest.raises(InstanceNotFoundError):
            await provider.get(provider_id)
        await refused(provider)

    async def test_the_own_instance_in_another_zone_is_no_obstacle_to_a_move(self):
        fake = a_fake(zones=("a", "b"))
        request = a_create_request(zone="a")
        await fake.create(request)
        provider = braked(fake, most=1)
        moved = msgspec.structs.replace(request, zone="b")
        await refused(provider)
        await provider.check(moved)
        await refused(provider, moved)
        await fake.delete(provider.provider_id(namespace="", name=request.name, zone="a"))
        await provider.create(moved)

    async def test_a_move_is_possible_though_no_list_has_shown_the_instance_yet(self):
        fake = a_fake(zones=("a", "b"))
        fake.appear_delay = timedelta(seconds=2)
        provider = braked(fake, most=1)
        request = a_create_request(zone="a")
        await provider.create(request)
        await refused(provider)
        await asyncio.sleep(9)
        await provider.check(msgspec.structs.replace(request, zone="b"))

    async def test_a_move_ends_in_the_other_zone_though_no_list_ever_showed_the_first(self):
        fake = a_fake(zones=("a", "b"))
        fake.appear_delay = timedelta(seconds=2)
        provider = braked(fake, most=1)
        request = a_create_request(zone="a")
        provider_id = await provider.create(request)
        await refused(provider)
        await asyncio.sleep(5)
        await provider.get(provider_id)
        await provider.delete(provider_id)
        with pytest.raises(InstanceNotFoundError):
            await provider.get(provider_id)
        await provider.create(msgspec.structs.replace(request, zone="b"))
        await refused(provider)

    async def test_a_list_too_old_to_show_an_instance_frees_no_place(self, monkeypatch):
        fake = a_fake()
        fake.appear_delay = timedelta(seconds=2)
        provider = braked(fake, most=1)
        provider_id = await provider.create(a_create_request())
        stale = await fake.list_by_tag()
        await asyncio.sleep(3)
        await provider.get(provider_id)
        monkeypatch.setattr(fake, "list_by_tag", AsyncMock(return_value=stale))
        await refused(provider)

    async def test_a_list_that_fails_admits_nobody(self):
        fake = a_fake()
        provider = braked(fake, most=1)
        fake.fail("list_by_tag", TransientProviderError("no answer"))
        with pytest.raises(TransientProviderError):
            await provider.create(a_create_request())
        assert fake.instances == {}

    async def test_a_check_counts_the_own_place_as_free(self):
        fake = a_fake()
        request = a_create_request()
        await fake.create(request)
        provider = braked(fake, most=1)
        await provider.check(request)
        with pytest.raises(QuotaExceededError):
            await provider.check(a_create_request())


class TestRate:
    async def test_as_many_in_a_minute_as_allowed(self):
        fake = a_fake()
        provider = braked(fake, per_minute=3)
        for _ in range(3):
            await provider.create(a_create_request())
        error = await refused(provider)
        assert str(error) == "the operator's own limit --max-creates-per-minute=3 is reached"
        assert error.retry_after == MINUTE
        await asyncio.sleep(60)
        await provider.create(a_create_request())
        assert len(fake.creates) == 4

    async def test_those_who_wait_get_turns(self):
        provider = braked(a_fake(), per_minute=2)
        for _ in range(2):
            await provider.create(a_create_request())
        waits = [(await refused(provider)).retry_after for _ in range(4)]
        assert waits == [timedelta(seconds=s) for s in (60, 90, 120, 150)]

    async def test_who_only_checks_takes_no_turn(self):
        fake = a_fake()
        provider = braked(fake, per_minute=1)
        await provider.create(a_create_request())
        for _ in range(50):
            with pytest.raises(QuotaExceededError):
                await provider.check(a_create_request())
        assert (await refused(provider)).retry_after == MINUTE

    async def test_nobody_is_sent_away_for_long(self):
        provider = braked(a_fake(), per_minute=1)
        await provider.create(a_create_request())
        waits = [(await refused(provider)).retry_after for _ in range(50)]
        assert max(wait for wait in waits if wait) == 10 * MINUTE

    async def test_taking_over_is_no_creation(self):
        fake = a_fake()
        request = a_create_request()
        await fake.create(request)
        provider = braked(fake, per_minute=1)
        for _ in range(3):
            await provider.create(request)
        await provider.create(a_create_request())

    async def test_a_refused_create_leaves_its_turn_to_another(self):
        fake = a_fake()
        provider = braked(fake, per_minute=1)
        fake.fail("create", StockOutError("none left"))
        with pytest.raises(StockOutError):
            await provider.create(a_create_request())
        await provider.create(a_create_request())

    async def test_a_replacement_does_not_begin_when_it_could_not_end(self):
        fake = a_fake()
        provider = braked(fake, per_minute=1)
        request = a_create_request()
        await provider.create(request)
        with pytest.raises(QuotaExceededError, match="max-creates-per-minute"):
            await provider.check(request)


class TestReconciled:
    """With the reconciler above it."""

    @staticmethod
    async def a_braked_world(count: int, **limits: int) -> World:
        world = await a_world(*(a_proxy(f"p{n}") for n in range(count)))
        world.registry.provider = BrakedProvider(world.provider, BrakeLimits(**limits), world.clock)
        return world

    async def test_the_condition_says_why_a_proxy_waits(self):
        world = await self.a_braked_world(2, max_instances=1)
        await world.run(MINUTE, "p0")
        await world.run(MINUTE, "p1")
        row = await world.provisioned("p1")
        assert row.reason == "QuotaExceeded"
        assert row.message == "the operator's own limit --max-instances=1 is reached"
        assert "ProvisioningFailed" in world.events.reasons("p1")

    async def test_it_goes_on_by_itself_when_there_is_room(self):
        world = await self.a_braked_world(2, max_instances=1)
        await world.run(MINUTE, "p0")
        await world.run(MINUTE, "p1")
        await world.delete("p0")
        await world.run(MINUTE, "p0")
        await world.run(6 * MINUTE, "p1")
        assert (await world.provisioned("p1")).reason == "Created"

    async def test_a_fleet_comes_up_at_the_rate_and_not_slower(self):
        world = await self.a_braked_world(20, max_creates_per_minute=5)
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                group.create_task(world.run(5 * MINUTE, f"p{n}"))
        assert len(world.provider.instances) == 20
        moments = [one.at for one in world.provider.creates]
        for first, sixth in zip(moments, moments[5:], strict=False):
            assert sixth - first >= MINUTE
