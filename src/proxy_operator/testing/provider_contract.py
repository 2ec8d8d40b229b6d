"""The suite every provider must pass: subclass `ProviderContract` and give it a `harness` fixture.

A provider that is a `Surveyor` too must pass `SurveyorContract` beside it, on the same harness.

A rule a visitor must keep: nothing here knows an adapter; what an adapter cannot do, the contract
does not promise. Register the module for assertion rewriting before importing it.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
import pytest

from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import instance_name, owner_labels
from proxy_operator.domain.proxy import ProviderName, ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, Provider, Surveyor
from proxy_operator.provisioning.errors import InstanceNotFoundError, PermanentProviderError

CLUSTER_ID = "contract-cluster"
OTHER_CLUSTER_ID = "other-cluster"
_numbers = itertools.count(1)


@dataclass
class ProviderHarness:
    """What an adapter's test gives to the suite."""

    provider: Provider
    """The provider under test, of cluster `CLUSTER_ID`."""
    other: Provider
    """The same provider in the same place, of cluster `OTHER_CLUSTER_ID`."""
    spec: ProxySpec = field(default_factory=lambda: ProxySpec(provider=ProviderName.LOCAL))
    """A spec that leads to a running instance."""
    patience: timedelta = timedelta(seconds=10)
    """How long starting or ending an instance may take."""
    poll: timedelta = timedelta(milliseconds=20)

    def request(self, *, cluster_id: str = CLUSTER_ID, uid: str = "") -> CreateRequest:
        """Return a request for an instance of its own, or for the Proxy of that UID."""
        number = next(_numbers)
        uid = uid or f"00000000-0000-4000-9000-{number:012d}"
        return CreateRequest(
            name=instance_name(uid),
            namespace="default",
            proxy_name=f"p{number}",
            uid=uid,
            request_id=f"00000000-0000-4000-a000-{number:012d}",
            zone=self.provider.placements(self.spec)[0],
            spec=self.spec,
            labels=owner_labels(uid=uid, cluster_id=cluster_id, spec_hash="0" * 32),
        )

    def id_of(self, request: CreateRequest) -> str:
        """Return the id the provider computes for a request."""
        return self.provider.provider_id(
            namespace=request.namespace, name=request.name, zone=request.zone
        )

    async def eventually(self, ready: Callable[[], Awaitable[bool]]) -> None:
        """Wait until a condition holds, as long as patience lasts."""
        async with asyncio.timeout(self.patience.total_seconds()):
            while not await ready():  # noqa: ASYNC110 - a provider can only be polled
                await asyncio.sleep(self.poll.total_seconds())

    async def running(self, request: CreateRequest) -> Instance:
        """Create an instance and wait until it runs."""
        provider_id = await self.provider.create(request)
        await self.eventually(lambda: self.has_state(provider_id, InstanceState.RUNNING))
        return await self.provider.get(provider_id)

    async def foreign(self) -> CreateRequest:
        """Let the other cluster make an instance; return its request once it is to be seen."""
        request = self.request(cluster_id=OTHER_CLUSTER_ID)
        provider_id = await self.other.create(request)

        async def is_visible() -> bool:
            return not await self.has_state(provider_id, None)

        await self.eventually(is_visible)
        return request

    async def gone(self, provider_id: str) -> None:
        """Delete as a reconciler does, and wait until nothing is left."""
        await self.provider.delete(provider_id)
        await self.eventually(lambda: self.has_state(provider_id, None))

    async def has_state(self, provider_id: str, state: InstanceState | None) -> bool:
        """Tell whether the instance is in that state; None is not found."""
        try:
            return (await self.provider.get(provider_id)).state is state
        except InstanceNotFoundError:
            return state is None

    async def listed(self, provider: Provider | None = None) -> dict[str, Instance]:
        """Return what `list_by_tag` shows, by provider id."""
        listing = await (provider or self.provider).list_by_tag()
        assert listing.complete
        return {one.provider_id: one for one in listing.items}

    async def surveyed(self, provider: Provider | None = None) -> dict[str, Instance]:
        """Return what `list_all` shows, by provider id."""
        surveyor = provider or self.provider
        assert isinstance(surveyor, Surveyor)
        listing = await surveyor.list_all()
        assert listing.complete
        found = {one.provider_id: one for one in listing.items}
        assert len(found) == len(listing.items)
        return found


class ProviderContract:
    """One test per promise of `provisioning.contract.Provider`."""

    @pytest.fixture
    def harness(self) -> ProviderHarness:
        """Give the provider under test; every subclass overrides this."""
        raise NotImplementedError

    async def test_a_created_instance_comes_to_run_with_an_address(
        self, harness: ProviderHarness
    ) -> None:
        instance = await harness.running(harness.request())
        assert instance.ip
        assert instance.port

    async def test_the_computed_id_is_the_returned_id(self, harness: ProviderHarness) -> None:
        request = harness.request()
        returned = await harness.provider.create(request)
        assert returned == harness.id_of(request)
        assert (await harness.running(request)).provider_id == returned

    async def test_placements_are_never_empty(self, harness: ProviderHarness) -> None:
        assert harness.provider.placements(harness.spec)
        assert harness.provider.placements(ProxySpec())

    async def test_an_instance_may_appear_late_but_not_for_ever(
        self, harness: ProviderHarness
    ) -> None:
        assert timedelta() <= harness.provider.appears_within <= timedelta(hours=1)

    async def test_labels_are_those_of_the_create(self, harness: ProviderHarness) -> None:
        request = harness.request()
        provider_id = await harness.provider.create(request)
        await harness.eventually(lambda: harness.has_state(provider_id, InstanceState.RUNNING))
        assert (await harness.provider.get(provider_id)).labels == request.labels
        assert (await harness.listed())[provider_id].labels == request.labels

    async def test_a_repeated_create_makes_nothing_new(self, harness: ProviderHarness) -> None:
        request = harness.request()
        first = await harness.running(request)
        assert await harness.provider.create(request) == first.provider_id
        again = await harness.provider.get(first.provider_id)
        assert again == first
        assert list(await harness.listed()) == [first.provider_id]

    async def test_creates_at_once_make_one_instance(self, harness: ProviderHarness) -> None:
        request = harness.request()
        ids = await asyncio.gather(*(harness.provider.create(request) for _ in range(3)))
        assert set(ids) == {harness.id_of(request)}
        instance = await harness.running(request)
        assert list(await harness.listed()) == [instance.provider_id]

    async def test_a_create_does_not_take_a_foreign_instance(
        self, harness: ProviderHarness
    ) -> None:
        foreign = await harness.foreign()
        ours = harness.request(uid=foreign.uid)
        with pytest.raises(PermanentProviderError, match="foreign"):
            await harness.provider.create(ours)
        provider_id = harness.id_of(foreign)
        await harness.eventually(lambda: harness.has_state(provider_id, InstanceState.RUNNING))
        assert (await harness.listed(harness.other))[provider_id].labels == foreign.labels

    async def test_a_check_makes_nothing(self, harness: ProviderHarness) -> None:
        request = harness.request()
        await harness.provider.check(request)
        assert await harness.listed() == {}
        with pytest.raises(InstanceNotFoundError):
            await harness.provider.get(harness.id_of(request))

    async def test_a_check_counts_what_our_instance_holds_as_free(
        self, harness: ProviderHarness
    ) -> None:
        request = harness.request()
        instance = await harness.running(request)
        again = msgspec.structs.replace(
            request, spec=msgspec.structs.replace(request.spec, port=instance.port)
        )
        await harness.provider.check(again)
        assert await harness.provider.get(instance.provider_id) == instance

    async def test_a_check_says_what_a_create_would(self, harness: ProviderHarness) -> None:
        foreign = await harness.foreign()
        ours = harness.request(uid=foreign.uid)
        with pytest.raises(PermanentProviderError, match="foreign") as checked:
            await harness.provider.check(ours)
        with pytest.raises(PermanentProviderError) as created:
            await harness.provider.create(ours)
        assert str(checked.value) == str(created.value)

    async def test_get_shows_the_labels_of_a_foreign_instance(
        self, harness: ProviderHarness
    ) -> None:
        foreign = await harness.foreign()
        provider_id = harness.id_of(foreign)
        await harness.eventually(lambda: harness.has_state(provider_id, InstanceState.RUNNING))
        assert (await harness.provider.get(provider_id)).labels == foreign.labels

    async def test_delete_does_not_touch_another_cluster(self, harness: ProviderHarness) -> None:
        foreign = harness.request(cluster_id=OTHER_CLUSTER_ID)
        provider_id = await harness.other.create(foreign)
        await harness.eventually(lambda: harness.has_state(provider_id, InstanceState.RUNNING))
        with pytest.raises(PermanentProviderError):
            await harness.provider.delete(provider_id)
        assert (await harness.provider.get(provider_id)).state is InstanceState.RUNNING

    async def test_lists_hold_only_our_cluster(self, harness: ProviderHarness) -> None:
        theirs = await harness.other.create(harness.request(cluster_id=OTHER_CLUSTER_ID))
        ours = (await harness.running(harness.request())).provider_id
        assert list(await harness.listed()) == [ours]
        await harness.eventually(lambda: harness.has_state(theirs, InstanceState.RUNNING))
        assert list(await harness.listed(harness.other)) == [theirs]

    async def test_what_does_not_exist_is_not_found(self, harness: ProviderHarness) -> None:
        with pytest.raises(InstanceNotFoundError):
            await harness.provider.get(harness.id_of(harness.request()))
        assert await harness.listed() == {}

    async def test_deleting_nothing_is_no_error(self, harness: ProviderHarness) -> None:
        await harness.provider.delete(harness.id_of(harness.request()))

    async def test_a_deleted_instance_goes(self, harness: ProviderHarness) -> None:
        instance = await harness.running(harness.request())
        await harness.gone(instance.provider_id)
        assert await harness.listed() == {}

    async def test_a_repeated_delete_is_harmless(self, harness: ProviderHarness) -> None:
        instance = await harness.running(harness.request())
        await harness.provider.delete(instance.provider_id)
        await harness.provider.delete(instance.provider_id)
        await harness.gone(instance.provider_id)
        await harness.provider.delete(instance.provider_id)

    async def test_an_instance_can_be_deleted_before_it_runs(
        self, harness: ProviderHarness
    ) -> None:
        provider_id = await harness.provider.create(harness.request())
        await harness.eventually(lambda: self._is_visible(harness, provider_id))
        await harness.gone(provider_id)
        assert await harness.listed() == {}

    async def test_a_name_can_be_used_again_once_gone(self, harness: ProviderHarness) -> None:
        request = harness.request()
        await harness.gone((await harness.running(request)).provider_id)
        # The same Proxy, and another create: a request id is never used again.
        again = harness.request(uid=request.uid)
        assert (await harness.running(again)).state is InstanceState.RUNNING

    async def test_deleting_one_leaves_the_others(self, harness: ProviderHarness) -> None:
        first = await harness.running(harness.request())
        second = await harness.running(harness.request())
        await harness.gone(first.provider_id)
        assert await harness.provider.get(second.provider_id) == second

    async def _is_visible(self, harness: ProviderHarness, provider_id: str) -> bool:
        return not await harness.has_state(provider_id, None)


class SurveyorContract:
    """One test per promise of `provisioning.contract.Surveyor`."""

    async def test_a_survey_of_nothing_is_empty(self, harness: ProviderHarness) -> None:
        assert await harness.surveyed() == {}

    async def test_a_survey_shows_what_every_cluster_has(self, harness: ProviderHarness) -> None:
        ours, theirs = await self._one_of_each(harness)
        expected = {
            ours.provider_id: await harness.provider.get(ours.provider_id),
            theirs.provider_id: await harness.other.get(theirs.provider_id),
        }
        assert await harness.surveyed() == expected
        # Whoever asks.
        assert await harness.surveyed(harness.other) == expected

    async def test_a_survey_tells_whose_an_instance_is(self, harness: ProviderHarness) -> None:
        request = harness.request()
        ours = (await harness.running(request)).provider_id
        foreign = await harness.foreign()
        labels = {pid: one.labels for pid, one in (await harness.surveyed()).items()}
        assert labels == {ours: request.labels, harness.id_of(foreign): foreign.labels}

    async def test_a_survey_shows_what_does_not_run_yet(self, harness: ProviderHarness) -> None:
        provider_id = await harness.provider.create(harness.request())

        async def is_visible() -> bool:
            return not await harness.has_state(provider_id, None)

        await harness.eventually(is_visible)
        assert list(await harness.surveyed()) == [provider_id]

    async def test_a_survey_shows_no_more_what_has_gone(self, harness: ProviderHarness) -> None:
        ours, theirs = await self._one_of_each(harness)
        await harness.gone(ours.provider_id)
        for provider in (harness.provider, harness.other):
            assert list(await harness.surveyed(provider)) == [theirs.provider_id]

    async def test_a_survey_changes_nothing(self, harness: ProviderHarness) -> None:
        ours, theirs = await self._one_of_each(harness)
        for provider in (harness.provider, harness.other):
            await harness.surveyed(provider)
        assert await harness.listed() == {ours.provider_id: ours}
        assert await harness.listed(harness.other) == {theirs.provider_id: theirs}

    async def test_what_a_survey_shows_is_still_not_ours_to_delete(
        self, harness: ProviderHarness
    ) -> None:
        _, theirs = await self._one_of_each(harness)
        assert theirs.provider_id in await harness.surveyed()
        with pytest.raises(PermanentProviderError):
            await harness.provider.delete(theirs.provider_id)
        assert await harness.other.get(theirs.provider_id) == theirs

    async def _one_of_each(self, harness: ProviderHarness) -> tuple[Instance, Instance]:
        """Return a running instance of ours, and one of the other cluster."""
        ours = await harness.running(harness.request())
        theirs = harness.id_of(await harness.foreign())
        await harness.eventually(lambda: harness.has_state(theirs, InstanceState.RUNNING))
        return ours, await harness.other.get(theirs)
