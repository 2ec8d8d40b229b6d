"""Records, and the groups that rank them: a shape groups records, a view groups shapes.

The rule: whatever makes a record leasable sooner or better goes through `Shape.refresh`, which
announces it to every ranking that may hold the record; what makes it worse needs no announcement.
"""

from collections.abc import Hashable, Iterable, Mapping
from contextlib import closing
from enum import IntEnum
from functools import partial
from math import inf
from operator import methodcaller
from typing import Final, Generic, Protocol, TypeVar

from proxy_operator.domain.lease import Candidate, Lease
from proxy_operator.leasing.frontier import Frontier, Key, Lane
from proxy_operator.leasing.recent import Recent

EVERYBODY: Final = ""
"""The target of a cooldown that blocks a proxy whatever the client wants to fetch."""

_FEW: Final = 2
"""So many members are looked at one by one before a lane is made for a target."""

_SPARE: Final = 64
"""A lane reaches so many members further than is needed at once."""

_MOST_LANES: Final = 128
"""Lanes that a group keeps at once: each is told of every release."""


class State(IntEnum):
    """What a record counts as, before cooldowns are looked at."""

    OPEN = 0
    UNHEALTHY = 1
    AT_CAPACITY = 2


class Claim:
    """A lease as the store keeps it: whose it is, and its end on the monotonic clock."""

    __slots__ = ("expires", "lease", "record", "serial")

    def __init__(self, record: "Record", lease: Lease, expires: float, serial: int) -> None:
        self.record = record
        self.lease = lease
        self.expires = expires
        self.serial = serial

    @property
    def id(self) -> str:
        return self.lease.id

    @property
    def key(self) -> Key:
        """What it is ordered by among all leases: the soonest end first."""
        return (self.expires, self.serial, self)


class Record:
    """A candidate with its leases and cooldowns. Lives from its first upsert to its removal."""

    __slots__ = (
        "_is_soonest_exact",
        "address",
        "candidate",
        "claims",
        "cooling",
        "key",
        "serial",
        "shape",
        "soonest",
        "state",
    )

    def __init__(self, candidate: Candidate) -> None:
        self.candidate = candidate
        self.address = candidate.address
        """The last one known: it outlives the moments in which there is none."""
        self.claims: dict[str, Claim] = {}
        self.cooling: dict[str, float] = {}
        """End of the cooldown by target."""
        self.state = State.UNHEALTHY
        self.serial = 0
        self.shape: Shape | None = None
        self.key: Key = ()
        self.soonest = inf
        """No lease ends before; exact only after `first_expiry`."""
        self._is_soonest_exact = True

    def add_claim(self, claim: Claim) -> None:
        self.claims[claim.id] = claim
        self.soonest = min(self.soonest, claim.expires)

    def drop_claim(self, claim: Claim) -> None:
        del self.claims[claim.id]
        if not self.claims:
            self.soonest, self._is_soonest_exact = inf, True
        elif claim.expires <= self.soonest:
            self._is_soonest_exact = False

    def move_claim(self, claim: Claim, expires: float) -> None:
        """Give a lease another end."""
        if claim.expires <= self.soonest:
            self._is_soonest_exact = False
        claim.expires = expires
        self.soonest = min(self.soonest, expires)

    def first_expiry(self) -> float:
        """Return when its first lease ends."""
        if not self._is_soonest_exact:
            self.soonest = min(claim.expires for claim in self.claims.values())
            self._is_soonest_exact = True
        return self.soonest

    def best(self, target: str) -> Key | None:
        """Return the key it is ranked by, None when it cannot be leased for `target` now."""
        if self.state:
            return None
        cooling = self.cooling
        if cooling and (EVERYBODY in cooling or target in cooling):
            return None
        return self.key

    def due(self) -> Key | None:
        """Return (moment, ...) at which its first lease ends, when its leases are in the way."""
        if self.state is not State.AT_CAPACITY or not self.candidate.max_leases:
            return None
        return (self.first_expiry(), self.serial, self, self.shape)

    def cooled_until(self, target: str) -> float:
        """Return when the last cooldown that blocks it for `target` ends."""
        return max(self.cooling.get(EVERYBODY, 0.0), self.cooling.get(target, 0.0))


class Ranked(Hashable, Protocol):
    """What a group ranks: a record, or a group of them."""

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""

    def due(self) -> Key | None:
        """Return the smallest (moment, ...) at which a lease ends that is in the way."""


M = TypeVar("M", bound=Ranked)


class Group(Generic[M]):
    """Members ranked, and counted.

    One ranking serves all targets. A target that has its favourites in cooldown gets a lane: its
    own ranking of as many members as it has use for, made by walking past those in cooldown.
    """

    def __init__(self, owner: int, recent: Recent, members: Iterable[M] = ()) -> None:
        self._owner = owner
        self._recent = recent
        self.members = set(members)
        self.considered = 0
        self.unhealthy = 0
        self.at_capacity = 0
        self._base: Frontier[M] = Frontier(owner, methodcaller("best", EVERYBODY), self.members)
        self._due: Frontier[M] = Frontier(owner, methodcaller("due"), self.members)
        self._lanes: dict[str, Lane[M]] = {}

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""
        lane = self._lanes.get(target) if self._lanes else None
        if lane is not None:
            key = lane.first()
            if key is None and lane.horizon is not None:
                return self._walk(target)
            self._touch(target, lane)
            return key
        key = self._base.first()
        if key is None or target == EVERYBODY:
            return key
        member: M = key[self._owner]
        return key if member.best(target) is key else self._walk(target)

    def due(self) -> Key | None:
        """Return the smallest (moment, ...) at which a lease ends that is in the way."""
        return self._due.first()

    def lower(self, member: M, key: Key) -> None:
        """Announce that the member may now be as good as `key`."""
        self._base.lower(member, key)
        for lane in self._lanes.values():
            lane.lower(member, key)

    def lower_due(self, member: M, key: Key) -> None:
        """Announce that a lease in the way of the member may end as soon as `key`."""
        self._due.lower(member, key)

    def count(self, considered: int, unhealthy: int, at_capacity: int) -> None:
        """Add to the counts."""
        self.considered += considered
        self.unhealthy += unhealthy
        self.at_capacity += at_capacity

    def forget(self, member: M) -> None:
        """Let a member go."""
        self.members.discard(member)
        for ranking in (self._base, self._due, *self._lanes.values()):
            ranking.discard(member)

    def drop_lanes(self) -> None:
        """Give up all lanes."""
        for target in [*self._lanes]:
            self._recent.drop((id(self._lanes), target))

    def _walk(self, target: str) -> Key | None:
        """Look past the members in cooldown; keep a lane when there were many of them.

        The lane reaches past as many members that are free as were not, so that walking costs no
        more than the changes that will use the lane up.
        """
        self._recent.drop((id(self._lanes), target))
        found: Key | None = None
        free: list[M] = []
        passed = 0
        with closing(self._base.walk()) as keys:
            for key in keys:
                if found is not None and found <= key:
                    if passed + len(free) <= _FEW:
                        return found
                    if len(free) > max(_SPARE, passed):
                        self._keep(target, free, key)
                        return found
                member: M = key[self._owner]
                current = member.best(target)
                if current is not None:
                    free.append(member)
                    found = current if found is None else min(found, current)
                passed += current is not key
        if passed > _FEW:
            self._keep(target, free, None)
        return found

    def _keep(self, target: str, members: Iterable[M], horizon: Key | None) -> None:
        lanes = self._lanes
        lane = lanes[target] = Lane(self._owner, methodcaller("best", target), members, horizon)
        self._recent.add((id(lanes), target), len(lane), partial(lanes.pop, target), tag=target)
        if len(lanes) > _MOST_LANES:
            self._recent.drop((id(lanes), next(iter(lanes))))

    def _touch(self, target: str, lane: Lane[M]) -> None:
        del self._lanes[target]
        self._lanes[target] = lane
        self._recent.touch((id(self._lanes), target))


class Shape(Group[Record]):
    """All records of one namespace with identical attributes."""

    def __init__(self, namespace: str, attributes: Mapping[str, str], recent: Recent) -> None:
        super().__init__(-2, recent)
        self.namespace = namespace
        self.attributes = attributes
        self.views: set[View] = set()

    def matches(self, namespace: str | None, selector: Mapping[str, str]) -> bool:
        """Tell whether its records are in the namespace and carry every selected attribute."""
        return (
            namespace is None or namespace == self.namespace
        ) and selector.items() <= self.attributes.items()

    def admit(self, record: Record, serial: int) -> None:
        """Take a record in; `serial` is fresh, so that its keys differ from all older ones."""
        record.shape, record.serial, record.state = self, serial, State.OPEN
        self.members.add(record)
        self._count_all(1, 0, 0)
        self.refresh(record)

    def expel(self, record: Record) -> None:
        """Let a record go."""
        was = record.state
        self._count_all(-1, -(was is State.UNHEALTHY), -(was is State.AT_CAPACITY))
        self.forget(record)
        record.shape, record.key, record.state = None, (), State.UNHEALTHY
        # The views' entries under this record's keys name the shape; they are repaired when seen.

    def refresh(self, record: Record, *, is_worse: bool = False) -> None:
        """Recompute what the record counts as and is ranked by, and announce it.

        `is_worse`: one more lease was all that happened, so there is nothing to announce.
        """
        candidate, active, was = record.candidate, len(record.claims), record.state
        cap = candidate.max_leases
        if not candidate.is_healthy:
            state = State.UNHEALTHY
        else:
            state = State.OPEN if cap is None or active < cap else State.AT_CAPACITY
        if state is not was:
            record.state = state
            self._count_all(
                0,
                (state is State.UNHEALTHY) - (was is State.UNHEALTHY),
                (state is State.AT_CAPACITY) - (was is State.AT_CAPACITY),
            )
        record.key = key = (
            active,
            candidate.latency_millis,
            candidate.name,
            candidate.namespace,
            record.serial,
            record,
            self,
        )
        if state is State.OPEN:
            if is_worse:
                return
            self.lower(record, key)
            for view in self.views:
                view.lower(self, key)
        elif state is State.AT_CAPACITY and cap:
            due = (record.soonest, record.serial, record, self)
            self.lower_due(record, due)
            for view in self.views:
                view.lower_due(self, due)

    def _count_all(self, considered: int, unhealthy: int, at_capacity: int) -> None:
        self.count(considered, unhealthy, at_capacity)
        for view in self.views:
            view.count(considered, unhealthy, at_capacity)


class View(Group[Shape]):
    """All shapes that a selector matches in a namespace, or in all of them (None)."""

    def __init__(
        self,
        namespace: str | None,
        selector: Mapping[str, str],
        recent: Recent,
        shapes: Iterable[Shape],
    ) -> None:
        super().__init__(-1, recent, shapes)
        self.namespace = namespace
        self.selector = selector
        for shape in self.members:
            self._join(shape)

    def admit(self, shape: Shape) -> None:
        """Take in a shape that has no records yet."""
        self.members.add(shape)
        self._join(shape)

    def dissolve(self) -> None:
        """Let all shapes go."""
        self.drop_lanes()
        for shape in self.members:
            shape.views.discard(self)

    def _join(self, shape: Shape) -> None:
        shape.views.add(self)
        self.count(shape.considered, shape.unhealthy, shape.at_capacity)
