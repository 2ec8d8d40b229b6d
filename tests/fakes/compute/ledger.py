"""Everything that ever happened, for assertions and for the bill. Only the world writes here.

Moments are seconds of the world's clock.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Birth = Literal["insert", "stranger"]
End = Literal["delete", "preempted", "stranger", "stock-out", "vanished"]


class Call(NamedTuple):
    """One request that reached the API, and its status; 0 when it got no answer."""

    at: float
    method: str
    project: str
    zone: str
    name: str
    status: int


class Insert(NamedTuple):
    """One insert that was accepted as new. Replays of its request id are no inserts."""

    at: float
    request_id: str
    instance_id: str
    project: str
    zone: str
    name: str
    labels: Mapping[str, str]


class Delete(NamedTuple):
    """One delete that found an instance which was not going yet."""

    at: float
    request_id: str
    instance_id: str
    project: str
    zone: str
    name: str
    labels: Mapping[str, str]


@dataclass
class Life:
    """One instance from the moment it exists until it does not. What is billed is this."""

    instance_id: str
    project: str
    zone: str
    name: str
    labels: Mapping[str, str]
    birth: Birth
    request_id: str
    born_at: float
    gone_at: float | None = None
    end: End | None = None

    def seconds(self, now: float) -> float:
        """Return for how long it has existed by now."""
        return (now if self.gone_at is None else min(now, self.gone_at)) - self.born_at


@dataclass
class Ledger:
    """The books. Lists are in the order of events."""

    calls: list[Call] = field(default_factory=list)
    inserts: list[Insert] = field(default_factory=list)
    deletes: list[Delete] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    """Requests that a correct client never sends, such as a request id used for two things."""

    def alive(self) -> list[Life]:
        """Return what exists and costs money."""
        return [life for life in self.lives if life.gone_at is None]

    def instance_seconds(self, now: float, lives: Iterable[Life] | None = None) -> float:
        """Return the bill by now, of these lives or of all."""
        return sum(life.seconds(now) for life in (self.lives if lives is None else lives))

    def most_inserts(self, name: str, window: float = 3600.0) -> int:
        """Return the most inserts of one name that began within any window of seconds."""
        moments = [one.at for one in self.inserts if one.name == name]
        return max((sum(1 for at in moments if 0 <= at - m < window) for m in moments), default=0)

    def count(self, method: str, since: float = 0.0) -> int:
        """Return how often a method was called: `aggregatedList`, `get`, `insert`, `delete`."""
        return sum(1 for call in self.calls if call.method == method and call.at >= since)
