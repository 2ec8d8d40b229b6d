"""A provider in memory, on a Clock: a cloud whose delays, refusals and lies a test can set.

Tests assert the world (`instances`, `creates`, `deletes`), not the calls; and the contract suite
runs on this fake too, so what it promises is what real providers promise.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL
from proxy_operator.domain.proxy import ProxySpec
from proxy_operator.provisioning.contract import CreateRequest, InstanceList
from proxy_operator.provisioning.errors import (
    InstanceNotFoundError,
    PermanentProviderError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.runtime.clock import Clock

Operation = Literal["check", "create", "get", "delete", "list_by_tag", "list_all"]

_ZERO = timedelta()


class Created(NamedTuple):
    """A create that the provider accepted as new."""

    provider_id: str
    request_id: str
    zone: str
    labels: dict[str, str]
    at: datetime


class Deleted(NamedTuple):
    """A delete that found an instance which was not going yet."""

    provider_id: str
    at: datetime


@dataclass
class Fault:
    """An error to raise from calls of one operation."""

    error: Exception
    times: int | None
    """How many calls are hit; None is all until `heal`."""
    is_reply_lost: bool
    """The call takes effect first, then raises."""


@dataclass
class FakeInstance:
    """One instance of the world. Moments are seconds of the fake's monotonic clock."""

    provider_id: str
    name: str
    zone: str
    labels: dict[str, str]
    ip: str
    port: int
    created_at: datetime
    appears: float
    runs: float
    forced: InstanceState | None = None
    """A state set by hand; it wins until the instance is deleted."""
    goes: float | None = None
    """When a deletion that was asked for is done."""
    polls_left: int = 0
    """How many more times a deleted instance is still seen."""

    def state(self, now: float) -> InstanceState:
        """Return what a reader sees now."""
        if self.goes is not None:
            return InstanceState.TERMINATING
        if self.forced is not None:
            return self.forced
        return InstanceState.RUNNING if now >= self.runs else InstanceState.PROVISIONING


@dataclass
class World:
    """What two fakes with different cluster ids share: one cloud project."""

    instances: dict[str, FakeInstance] = field(default_factory=dict)
    creates: list[Created] = field(default_factory=list)
    deletes: list[Deleted] = field(default_factory=list)
    addresses: Iterator[int] = field(default_factory=lambda: iter(range(1, 65535)))


class FakeProvider:
    """Switches are plain attributes; change them at any time.

    `world` may be shared by several fakes: operators with different cluster ids in one project.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        cluster_id: str = "cluster-1",
        zones: tuple[str, ...] = ("",),
        world: World | None = None,
    ) -> None:
        self._clock = clock
        self._cluster_id = cluster_id
        self._faults: dict[Operation, list[Fault]] = {}
        self.world = world or World()
        self.calls: Counter[Operation] = Counter()
        """Calls per operation, failed ones too."""
        self.zones = zones
        """Zones of specs without a gcp block; with one, its zone and fallbackZones count."""
        self.account = ""
        self.appears_within = timedelta(minutes=3)
        self.asks_again_after: tuple[timedelta, ...] = ()
        """A create that is asked for again finds what `late_refusals` hold."""
        self.late_refusals: dict[str, Exception] = {}
        """By zone: what an accepted create, of which nothing comes, turns out to have met."""
        self.provision_delay = timedelta(seconds=10)
        """From visible to Running."""
        self.appear_delay = _ZERO
        """From the accepted create to visible; deleting an invisible instance does nothing."""
        self.vanishing_zones: set[str] = set()
        """Zones that accept a create of which nothing ever comes (late stock-out)."""
        self.stocked_out_zones: set[str] = set()
        """Zones that refuse a create with StockOutError."""
        self.terminating_for = _ZERO
        """How long an instance stays Terminating after the delete."""
        self.terminating_polls = 0
        """How many `get`s still see a deleted instance, beside `terminating_for`."""
        self.is_list_complete = True
        """False: lists miss the instances of `hidden_zones` and say that they are incomplete."""
        self.hidden_zones: set[str] = set()
        self.obstacle = ""
        """What instances that have yet to run say of themselves."""
        self.trouble = ""
        """What instances that run or have stopped say of themselves."""
        self.latency = _ZERO
        """How long each call takes before it does anything."""

    # What a test sets up.

    def fail(
        self,
        operation: Operation,
        error: Exception,
        *,
        times: int | None = 1,
        is_reply_lost: bool = False,
    ) -> None:
        """Let the next calls of an operation raise; faults queue up in order."""
        self._faults.setdefault(operation, []).append(Fault(error, times, is_reply_lost))

    def lose_replies(self, operation: Operation, *, times: int | None = 1) -> None:
        """Let calls take effect and then raise TransientProviderError."""
        lost = TransientProviderError("the connection broke before the answer came")
        self.fail(operation, lost, times=times, is_reply_lost=True)

    def heal(self, operation: Operation | None = None) -> None:
        """Drop the faults of one operation, or all."""
        if operation is None:
            self._faults.clear()
        else:
            self._faults.pop(operation, None)

    def plant(
        self,
        name: str,
        labels: dict[str, str],
        *,
        zone: str = "",
        state: InstanceState = InstanceState.RUNNING,
        age: timedelta = _ZERO,
    ) -> str:
        """Put an instance into the world that no create of ours made; return its id."""
        made = self._make(name, zone, labels, port=3128)
        made.created_at -= age
        made.appears = made.runs = self._clock.monotonic()
        made.forced = state
        return made.provider_id

    def set_state(self, provider_id: str, state: InstanceState | None) -> None:
        """Force a state; None gives the instance back to its own course."""
        self.world.instances[provider_id].forced = state

    def vanish(self, provider_id: str) -> None:
        """Take an instance out of the world, as somebody with a console would."""
        del self.world.instances[provider_id]

    # What a test asserts.

    @property
    def instances(self) -> dict[str, Instance]:
        """Every instance in the world now, visible or not, by provider id."""
        self._bury()
        return {pid: self._seen(one) for pid, one in self.world.instances.items()}

    @property
    def creates(self) -> list[Created]:
        """Every create ever accepted as new, vanished ones too."""
        return self.world.creates

    @property
    def deletes(self) -> list[Deleted]:
        """Every delete that set an instance on its way."""
        return self.world.deletes

    def instances_of(self, uid: str) -> list[Instance]:
        """Return the instances in the world that carry this UID label."""
        return [one for one in self.instances.values() if one.labels.get(UID_LABEL) == uid]

    # The provider contract.

    def placements(self, spec: ProxySpec) -> tuple[str, ...]:
        if spec.gcp is not None and spec.gcp.zone:
            return (spec.gcp.zone, *(z for z in spec.gcp.fallback_zones if z != spec.gcp.zone))
        return self.zones

    def provider_id(self, *, namespace: str, name: str, zone: str) -> str:  # noqa: ARG002 - names are unique across namespaces
        return f"zones/{zone}/instances/{name}" if zone else f"instances/{name}"

    async def check(self, request: CreateRequest) -> None:
        lost_reply = await self._enter("check")
        if lost_reply:
            raise lost_reply
        self._bury()
        self._require_possible(request)

    async def create(self, request: CreateRequest) -> str:
        lost_reply = await self._enter("create")
        provider_id = self._create(request)
        if lost_reply:
            raise lost_reply
        return provider_id

    async def get(self, provider_id: str) -> Instance:
        lost_reply = await self._enter("get")
        if lost_reply:
            raise lost_reply
        one = self._visible(provider_id)
        if one is None:
            raise InstanceNotFoundError(f"no instance {provider_id}")
        seen = self._seen(one)
        if one.goes is not None:
            one.polls_left -= 1
        return seen

    async def delete(self, provider_id: str) -> None:
        lost_reply = await self._enter("delete")
        one = self._visible(provider_id)
        if one is not None:
            self._delete(one)
        if lost_reply:
            raise lost_reply

    async def list_by_tag(self) -> InstanceList:
        return await self._list(
            "list_by_tag", lambda one: one.labels.get(CLUSTER_LABEL) == self._cluster_id
        )

    # The contract of surveyors.

    async def list_all(self) -> InstanceList:
        return await self._list("list_all", lambda one: UID_LABEL in one.labels)

    # The world's own course.

    async def _enter(self, operation: Operation) -> Exception | None:
        """Take the call's time and raise what is due; return what to raise after the deed."""
        self.calls[operation] += 1
        await asyncio.sleep(self.latency.total_seconds())
        faults = self._faults.get(operation)
        if not faults:
            return None
        fault = faults[0]
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                faults.pop(0)
        if fault.is_reply_lost:
            return fault.error
        raise fault.error

    async def _list(
        self, operation: Operation, is_wanted: Callable[[FakeInstance], bool]
    ) -> InstanceList:
        lost_reply = await self._enter(operation)
        if lost_reply:
            raise lost_reply
        self._bury()
        items = tuple(
            self._seen(one)
            for one in self.world.instances.values()
            if one.appears <= self._clock.monotonic()
            and is_wanted(one)
            and (self.is_list_complete or one.zone not in self.hidden_zones)
        )
        return InstanceList(items, self.is_list_complete)

    def _create(self, request: CreateRequest) -> str:
        self._bury()
        provider_id = self.provider_id(
            namespace=request.namespace, name=request.name, zone=request.zone
        )
        if request.is_repeated:
            if request.zone in self.late_refusals:
                raise self.late_refusals[request.zone]
            return provider_id
        if self._require_possible(request):
            return provider_id
        self.world.creates.append(
            Created(
                provider_id,
                request.request_id,
                request.zone,
                dict(request.labels),
                self._clock.now(),
            )
        )
        if request.zone not in self.vanishing_zones | self.late_refusals.keys():
            self._make(request.name, request.zone, request.labels, request.spec.port or 3128)
        return provider_id

    def _require_possible(self, request: CreateRequest) -> bool:
        """Raise what keeps this from being made; tell whether our instance exists already."""
        existing = self.world.instances.get(
            self.provider_id(namespace=request.namespace, name=request.name, zone=request.zone)
        )
        if existing is not None:
            self._require_owner(existing, request.labels)
            return True
        if request.zone in self.stocked_out_zones:
            raise StockOutError(f"zone {request.zone} has no capacity left")
        return False

    def _make(self, name: str, zone: str, labels: dict[str, str], port: int) -> FakeInstance:
        appears = self._clock.monotonic() + self.appear_delay.total_seconds()
        number = next(self.world.addresses)
        one = FakeInstance(
            provider_id=self.provider_id(namespace="", name=name, zone=zone),
            name=name,
            zone=zone,
            labels=dict(labels),
            ip=f"10.0.{number // 256}.{number % 256}",
            port=port,
            created_at=self._clock.now(),
            appears=appears,
            runs=appears + self.provision_delay.total_seconds(),
        )
        self.world.instances[one.provider_id] = one
        return one

    def _require_owner(self, one: FakeInstance, labels: dict[str, str]) -> None:
        for key in (UID_LABEL, CLUSTER_LABEL):
            if one.labels.get(key) != labels.get(key):
                raise PermanentProviderError(f"name {one.name} is taken by a foreign instance")

    def _delete(self, one: FakeInstance) -> None:
        if one.labels.get(CLUSTER_LABEL) != self._cluster_id:
            raise PermanentProviderError(f"instance {one.name} belongs to another cluster")
        if one.goes is not None:
            return
        self.world.deletes.append(Deleted(one.provider_id, self._clock.now()))
        one.goes = self._clock.monotonic() + self.terminating_for.total_seconds()
        one.polls_left = self.terminating_polls
        self._bury()

    def _visible(self, provider_id: str) -> FakeInstance | None:
        self._bury()
        one = self.world.instances.get(provider_id)
        return one if one is not None and one.appears <= self._clock.monotonic() else None

    def _bury(self) -> None:
        """Remove what has gone by now."""
        now = self._clock.monotonic()
        for pid, one in list(self.world.instances.items()):
            if one.goes is not None and one.goes <= now and one.polls_left <= 0:
                del self.world.instances[pid]

    def _message(self, state: InstanceState) -> str:
        match state:
            case InstanceState.PROVISIONING:
                return self.obstacle
            case InstanceState.TERMINATING:
                return ""
            case _:
                return self.trouble

    def _seen(self, one: FakeInstance) -> Instance:
        state = one.state(self._clock.monotonic())
        is_running = state is InstanceState.RUNNING
        return Instance(
            provider_id=one.provider_id,
            state=state,
            ip=one.ip if is_running else None,
            port=one.port if is_running else None,
            zone=one.zone,
            labels=dict(one.labels),
            created_at=one.created_at,
            message=self._message(state),
        )
