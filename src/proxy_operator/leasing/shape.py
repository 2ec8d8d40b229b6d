"""Records, and their groups: a shape groups records, a view groups shapes.

The rule: every change of a record goes through `Shape.refresh`, which announces it to every ranking
that may hold the record.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from math import inf
from typing import Final

from proxy_operator.domain.lease import Candidate, Lease
from proxy_operator.leasing.frontier import Key
from proxy_operator.leasing.group import EVERYBODY, Group
from proxy_operator.leasing.recent import Kept, Recent


class State(IntEnum):
    """What a record counts as, before cooldowns are looked at."""

    OPEN = 0
    UNHEALTHY = 1
    AT_CAPACITY = 2


# Looking a member up in its enum costs more than the rest of what a refresh does with it.
_OPEN: Final = State.OPEN
_UNHEALTHY: Final = State.UNHEALTHY
_AT_CAPACITY: Final = State.AT_CAPACITY


class Claim:
    """A lease as the store keeps it: whose it is, and its end on the monotonic clock."""

    __slots__ = ("address", "expires", "expiry", "id", "lease", "record", "serial")

    def __init__(self, record: "Record", lease: Lease, expires: float, serial: int) -> None:
        self.id = lease.id
        self.record = record
        self.lease = lease
        self.address = record.address
        """Where the client was sent; what it reports later is about this address."""
        self.expires = expires
        self.serial = serial
        self.expiry: Expiry | None = None
        """What it waits under for its end; None once it has ended."""


Expiry = tuple[float, int, Claim]
"""What a claim is ordered by among all of them: the soonest end first."""


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
        candidate, active = record.candidate, len(record.claims)
        cap = candidate.max_leases
        if not candidate.is_healthy:
            state = _UNHEALTHY
        else:
            state = _OPEN if cap is None or active < cap else _AT_CAPACITY
        if state is not record.state:
            self._turn(record, state)
        record.key = key = (
            active,
            candidate.latency_millis,
            candidate.name,
            candidate.namespace,
            record.serial,
            record,
            self,
        )
        if state is _OPEN:
            if is_worse:
                return
            self.lower(record, key)
            for view in self.views:
                view.lower(self, key)
        elif state is _AT_CAPACITY and cap:
            due = (record.soonest, record.serial, record, self)
            self.lower_due(record, due)
            for view in self.views:
                view.lower_due(self, due)

    def _turn(self, record: Record, state: State) -> None:
        was, record.state = record.state, state
        self._count_all(
            0,
            (state is _UNHEALTHY) - (was is _UNHEALTHY),
            (state is _AT_CAPACITY) - (was is _AT_CAPACITY),
        )

    def _count_all(self, considered: int, unhealthy: int, at_capacity: int) -> None:
        self.count(considered, unhealthy, at_capacity)
        for view in self.views:
            view.count(considered, unhealthy, at_capacity)


class View(Group[Shape]):
    """All shapes that a selector matches in a namespace, or in all of them (None)."""

    kept: Kept

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
