"""Records, and the groups that rank them: a shape groups records, a view groups shapes.

The rule: whatever makes a record leasable sooner or better goes through `Shape.refresh`, which
announces it to every ranking that may hold the record; what makes it worse needs no announcement.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import IntEnum
from functools import partial
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from proxy_operator.domain.lease import Candidate, Lease
from proxy_operator.leasing.frontier import Frontier, Key
from proxy_operator.leasing.recent import Recent

EVERYBODY: Final = ""
"""The target of a cooldown that blocks a proxy whatever the client wants to fetch."""

_FEW: Final = 8
"""So many members are looked at one by one before a ranking is built for a target."""

_MOST_LANES: Final = 128
"""Rankings for targets that a group keeps at once: each is told of every release."""


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

    def due(self, target: str) -> Key | None:
        """Return (moment, ...) at which what blocks it ends, None when nothing due blocks it."""
        if self.state is State.UNHEALTHY or self.candidate.max_leases == 0:
            return None
        if self.state is State.AT_CAPACITY:
            return (self.first_expiry(), self.serial, self, self.shape)
        ends = [self.cooling[t] for t in {EVERYBODY, target} if t in self.cooling]
        return (max(ends), self.serial, self, self.shape) if ends else None

    def earliest_due(self) -> float:
        """Return a moment not after `due` for any target; infinite when there is none."""
        return min(self.soonest, *self.cooling.values()) if self.cooling else self.soonest


class Ranked(Hashable, Protocol):
    """What a group ranks: a record, or a group of them."""

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""

    def due(self, target: str) -> Key | None:
        """Return the smallest (moment, ...) at which something blocked comes back."""


M = TypeVar("M", bound=Ranked)


class Group(Generic[M]):
    """Members ranked, and counted. Rankings for single targets are made when they pay."""

    def __init__(self, owner: int, recent: Recent, members: Iterable[M] = ()) -> None:
        self._owner = owner
        self._recent = recent
        self.members = set(members)
        self.considered = 0
        self.unhealthy = 0
        self.at_capacity = 0
        self._base: Frontier[M] = Frontier(owner, partial(_best_of, EVERYBODY), self.members)
        self._lanes: dict[str, Frontier[M]] = {}
        self._dues: dict[str, Frontier[M]] = {}

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""
        if target in self._lanes:
            return self._lane(self._lanes, _best_of, target).first()
        key = self._base.first()
        if key is None or target == EVERYBODY:
            return key
        member: M = key[self._owner]
        if member.best(target) is key:
            return key
        is_settled, found = self._base.search(partial(_best_of, target), _FEW)
        return found if is_settled else self._lane(self._lanes, _best_of, target).first()

    def due(self, target: str) -> Key | None:
        """Return the smallest (moment, ...) at which something blocked comes back."""
        if len(self.members) > _FEW:
            return self._lane(self._dues, _due_of, target).first()
        dues = [due for member in self.members if (due := member.due(target)) is not None]
        return min(dues, default=None)

    def lower(self, member: M, key: Key) -> None:
        """Announce that the member may now be as good as `key`."""
        self._base.lower(member, key)
        for lane in self._lanes.values():
            lane.lower(member, key)

    def lower_due(self, member: M, key: Key) -> None:
        """Announce that the member may be due back as soon as `key`."""
        for lane in self._dues.values():
            lane.lower(member, key)

    def count(self, considered: int, unhealthy: int, at_capacity: int) -> None:
        """Add to the counts."""
        self.considered += considered
        self.unhealthy += unhealthy
        self.at_capacity += at_capacity

    def forget(self, member: M) -> None:
        """Let a member go."""
        self.members.discard(member)
        for lane in (self._base, *self._lanes.values(), *self._dues.values()):
            lane.discard(member)

    def drop_lanes(self) -> None:
        """Give up the rankings made for targets."""
        for lanes in (self._lanes, self._dues):
            for target in [*lanes]:
                self._recent.drop((id(lanes), target))

    def _lane(self, lanes: dict[str, Frontier[M]], bound: "_BoundFor", target: str) -> Frontier[M]:
        """Return the ranking for a target, made now if need be, as the one used last."""
        lane = lanes.pop(target, None)
        if lane is not None:
            lanes[target] = lane
            self._recent.touch((id(lanes), target))
            return lane
        lane = lanes[target] = Frontier(self._owner, partial(bound, target), self.members)
        self._recent.add(
            (id(lanes), target), len(self.members), partial(lanes.pop, target), tag=target
        )
        if len(lanes) > _MOST_LANES:
            self._recent.drop((id(lanes), next(iter(lanes))))
        return lane


_BoundFor = Callable[[str, Ranked], Key | None]


def _best_of(target: str, member: Ranked) -> Key | None:
    return member.best(target)


def _due_of(target: str, member: Ranked) -> Key | None:
    return member.due(target)


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

    def refresh(self, record: Record) -> None:
        """Recompute what the record counts as and is ranked by, and announce it."""
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
            self.lower(record, key)
            for view in self.views:
                view.lower(self, key)
        self._announce_due(record)

    def _announce_due(self, record: Record) -> None:
        moment = record.earliest_due()
        if moment < inf:
            due = (moment, record.serial, record, self)
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
