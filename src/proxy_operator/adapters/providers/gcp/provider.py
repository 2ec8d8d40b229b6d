"""The provider `gcp`: the order of calls behind each promise of the contract.

A rule a visitor must keep: an instance of our name is ours only by its labels, and nobody else's
is ever changed.
"""

from datetime import timedelta
from typing import Final, NamedTuple

from proxy_operator.adapters.providers.gcp import manifests, states
from proxy_operator.adapters.providers.gcp.api import ComputeApi
from proxy_operator.adapters.providers.gcp.breaker import Breaker, Place
from proxy_operator.adapters.providers.gcp.errors import InvalidPathError, NameTakenError
from proxy_operator.adapters.providers.gcp.listing import SharedListing
from proxy_operator.adapters.providers.gcp.session import Document
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL, is_owned_by
from proxy_operator.domain.proxy import GcpBlock, ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import Clock

APPEARS_WITHIN: Final = timedelta(minutes=5)
"""The last time a create is asked about, and what an insert takes from there, with room."""
ASKS_AGAIN_AFTER: Final = (
    timedelta(seconds=15),
    timedelta(seconds=60),
    timedelta(seconds=120),
)


class _Accepted(NamedTuple):
    """A create that was accepted and whose instance has not been seen to run."""

    place: Place
    at: float


class GcpProvider:
    """Compute Engine instances of one project."""

    def __init__(self, api: ComputeApi, *, cluster_id: str, clock: Clock) -> None:
        self._api = api
        self._cluster_id = cluster_id
        self._clock = clock
        self._breaker = Breaker(clock)
        self._listing = SharedListing(self._list, clock)
        self._accepted: dict[str, _Accepted] = {}

    @property
    def account(self) -> str:
        return self._api.project

    @property
    def appears_within(self) -> timedelta:
        return APPEARS_WITHIN

    @property
    def asks_again_after(self) -> tuple[timedelta, ...]:
        return ASKS_AGAIN_AFTER

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        return manifests.placements(spec)

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:  # noqa: ARG002 - names are unique across namespaces
        return manifests.provider_id_of(zone, name)

    async def check(self, request: CreateRequest) -> None:
        manifests.check(request)
        found = await self._api.get(request.zone, request.name)
        if found is not None:
            self._refuse_foreign(found, request)
        refusal = self._breaker.refusal(_place_of(request), request.name)
        # A quota has room again once our present instance has gone.
        if isinstance(refusal, StockOutError):
            raise refusal

    async def create(self, request: CreateRequest) -> str:
        body, request_id = manifests.instance(request), manifests.request_id_of(request)
        provider_id = manifests.provider_id_of(request.zone, request.name)
        place = _place_of(request)
        if not request.is_repeated:
            self._breaker.admit(place, request.name)
        try:
            failed = await self._insert(request, body, request_id)
            if failed is not None:
                raise failed
        except NameTakenError:
            self._breaker.leave(place, request.name)
            return await self._take_over(request)
        except QuotaExceededError as err:
            self._breaker.failed(place, err)
            self._accepted.pop(provider_id, None)
            raise
        except ProviderError:
            self._breaker.leave(place, request.name)
            raise
        finally:
            self._listing.touch(provider_id)
        if not request.is_repeated:
            self._note_accepted(provider_id, place)
        return provider_id

    async def get(self, provider_id: str) -> Instance:
        where = manifests.parse_provider_id(provider_id)
        if where is None:
            raise InstanceNotFoundError(f"there is no instance {provider_id}")
        running = await self._listing.running(provider_id)
        if running is not None:
            self._note_running(provider_id)
            return running
        document = await self._look(*where)
        self._listing.touch(provider_id)
        if document is None:
            self._note_missing(provider_id)
            raise InstanceNotFoundError(f"there is no instance {provider_id}")
        instance = states.instance_of(document)
        if instance.state is InstanceState.RUNNING:
            self._note_running(provider_id)
        return instance

    async def delete(self, provider_id: str) -> None:
        where = manifests.parse_provider_id(provider_id)
        document = await self._look(*where) if where else None
        if where is None or document is None:
            return
        if (document.get("labels") or {}).get(CLUSTER_LABEL) != self._cluster_id:
            raise PermanentProviderError(
                f"instance {provider_id} is a foreign instance:"
                " it does not carry this operator's labels"
            )
        if states.state_of(document) is InstanceState.TERMINATING:
            return
        self._accepted.pop(provider_id, None)
        try:
            await self._api.delete(*where)
        finally:
            self._listing.touch(provider_id)

    async def list_by_tag(self) -> InstanceList:
        return await self._listing.renew()

    async def list_all(self) -> InstanceList:
        """Do what `provisioning.contract.Surveyor` promises."""
        found = await self._api.list(UID_LABEL, None)
        return InstanceList(tuple(states.instance_of(d) for d in found.items), found.complete)

    async def _look(self, zone: str, name: str) -> Document | None:
        """Return the instance, or None; a zone that the project does not have holds none."""
        try:
            return await self._api.get(zone, name)
        except InvalidPathError:
            found = await self._api.list(CLUSTER_LABEL, self._cluster_id)
            # A complete list speaks of every zone.
            if not found.complete or not found.zones or zone in found.zones:
                raise
            return None

    async def _list(self) -> InstanceList:
        found = await self._api.list(CLUSTER_LABEL, self._cluster_id)
        # The filter is the server's; what is killed on its word is checked here.
        ours = [
            d for d in found.items if d.get("labels", {}).get(CLUSTER_LABEL) == self._cluster_id
        ]
        return InstanceList(tuple(states.instance_of(d) for d in ours), found.complete)

    async def _insert(
        self, request: CreateRequest, body: Document, request_id: str
    ) -> ProviderError | None:
        """Send the insert; return why the operation behind it has failed, or None."""
        try:
            return await self._api.insert(request.zone, body, request_id)
        except (TransientProviderError, EnvironmentProviderError):
            raise
        except ProviderError as err:
            if request.is_repeated:
                # Refused now says nothing of what was accepted then.
                raise TransientProviderError(str(err)) from err
            raise

    async def _take_over(self, request: CreateRequest) -> str:
        """Return the id of the instance that has the name already, if it is ours."""
        found = await self._api.get(request.zone, request.name)
        if found is None:
            raise TransientProviderError(
                f"the name {request.name} is taken in zone {request.zone},"
                " and no instance of it is to be seen"
            )
        self._refuse_foreign(found, request)
        return manifests.provider_id_of(request.zone, request.name)

    def _refuse_foreign(self, document: Document, request: CreateRequest) -> None:
        labels = document.get("labels") or {}
        if not is_owned_by(labels, uid=request.uid, cluster_id=self._cluster_id):
            raise PermanentProviderError(
                f"the name {request.name} is taken by a foreign instance:"
                f" one in zone {request.zone} without this operator's labels"
            )

    def _note_accepted(self, provider_id: str, place: Place) -> None:
        now = self._clock.monotonic()
        longest = APPEARS_WITHIN.total_seconds()
        self._accepted = {pid: one for pid, one in self._accepted.items() if now - one.at < longest}
        self._accepted[provider_id] = _Accepted(place, now)

    def _note_running(self, provider_id: str) -> None:
        accepted = self._accepted.pop(provider_id, None)
        if accepted is not None:
            self._breaker.ran(accepted.place, accepted.at)

    def _note_missing(self, provider_id: str) -> None:
        """Take a create for failed that has brought nothing for as long as it may."""
        accepted = self._accepted.get(provider_id)
        if accepted is None:
            return
        waited = timedelta(seconds=self._clock.monotonic() - accepted.at)
        if waited >= ASKS_AGAIN_AFTER[-1]:
            del self._accepted[provider_id]
            self._breaker.failed(accepted.place, StockOutError("no instance came of a create"))


def _place_of(request: CreateRequest) -> Place:
    return Place(request.zone, (request.spec.gcp or GcpBlock()).machine_type or "")
