"""Groups: members ranked for any target, and counted.

The rule: a member that can be leased sooner, or ranks better, than before is announced by `lower`;
one that got worse needs no announcement.
"""

from collections.abc import Hashable, Iterable
from contextlib import closing
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from proxy_operator.leasing.frontier import Frontier, Key
from proxy_operator.leasing.recent import Kept, Recent

EVERYBODY: Final = ""
"""The target of a cooldown that blocks a proxy whatever the client wants to fetch."""

_FEW: Final = 2
"""So many members are looked at one by one before a lane is made for a target."""

_SPARE: Final = 64
"""A lane reaches so many members further than is needed at once."""

_MOST_LANES: Final = 128
"""Lanes that a group keeps at once: each is told of every release."""


class Ranked(Hashable, Protocol):
    """What a group ranks: a record, or a group of them."""

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""

    def due(self) -> Key | None:
        """Return the smallest (moment, ...) at which a lease ends that is in the way."""


M = TypeVar("M", bound=Ranked)


class Lane(Frontier[M]):
    """A target's own ranking."""

    __slots__ = ("kept",)

    kept: Kept


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
        self._base: Frontier[M] = Frontier(owner, lambda m: m.best(EVERYBODY), self.members)
        self._due: Frontier[M] = Frontier(owner, lambda m: m.due(), self.members)
        self._lanes: dict[str, Lane[M]] = {}

    def best(self, target: str) -> Key | None:
        """Return the smallest key that can be leased for `target`."""
        if self._lanes and (lane := self._lanes.get(target)) is not None:
            lane.kept.is_used = True
            key = lane.first()
            return self._walk(target) if key is None and lane.horizon is not None else key
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
        if self._lanes:
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
        if len(lanes) >= _MOST_LANES:
            idle = (known for known, lane in lanes.items() if not lane.kept.spare())
            self._recent.drop((id(lanes), next(idle, next(iter(lanes)))))
        lane = Lane(self._owner, lambda m: m.best(target), members, horizon)
        drop = partial(lanes.pop, target)
        lane.kept = self._recent.add((id(lanes), target), len(lane), drop, tag=target)
        lanes[target] = lane
