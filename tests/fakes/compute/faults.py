"""What goes wrong, and when: rules that hit calls, each as often as it says.

The first rule that hits decides, except that delays of all rules add up.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import NamedTuple

from tests.fakes.compute.messages import RefusedError

_ZERO = timedelta()


class Target(NamedTuple):
    """What a call is about; empty where it has no such part."""

    method: str
    """`insert`, `get`, `delete`, `aggregatedList`, `operation`."""
    project: str = ""
    zone: str = ""
    name: str = ""


@dataclass(frozen=True)
class Refuse:
    """The call is answered with an error; with `is_done` after it took effect, as 503s may be."""

    error: RefusedError
    is_done: bool = False


@dataclass(frozen=True)
class LoseRequest:
    """The connection breaks and nothing was done."""


@dataclass(frozen=True)
class LoseReply:
    """The call takes effect and the connection breaks."""


@dataclass(frozen=True)
class Delay:
    """The call takes effect late, or its answer comes late. A client that left stops neither."""

    before: timedelta = _ZERO
    after: timedelta = _ZERO


@dataclass(frozen=True)
class FailOperation:
    """An insert is accepted, and its operation ends with an error after a while."""

    code: str = "ZONE_RESOURCE_POOL_EXHAUSTED"
    after: timedelta = timedelta(seconds=5)
    is_seen: bool = False
    """The instance appears, and vanishes when the operation ends."""


Effect = Refuse | LoseRequest | LoseReply | Delay | FailOperation


@dataclass
class Fault:
    """One rule. None, or an empty text, matches everything."""

    effect: Effect
    methods: frozenset[str] | None = None
    project: str = ""
    zone: str = ""
    name: str = ""
    times: int | None = None
    """How many calls it hits; None is all until it is removed."""
    chance: float = 1.0
    """The share of matching calls that it hits."""

    def matches(self, target: Target) -> bool:
        """Tell whether the rule is about this call, and not used up."""
        if self.times == 0 or (
            isinstance(self.effect, FailOperation) and target.method != "insert"
        ):
            return False
        wanted = (
            (self.project, target.project),
            (self.zone, target.zone),
            (self.name, target.name),
        )
        is_method = self.methods is None or target.method in self.methods
        return is_method and all(mine in {"", theirs} for mine, theirs in wanted)


class Struck(NamedTuple):
    """What hits one call."""

    before: float
    after: float
    fate: Refuse | LoseRequest | LoseReply | None
    operation: FailOperation | None


@dataclass
class Faults:
    """The rules in force."""

    random: Random = field(default_factory=lambda: Random(0))
    rules: list[Fault] = field(default_factory=list)

    def add(
        self,
        effect: Effect,
        *methods: str,
        times: int | None = None,
        zone: str = "",
        name: str = "",
        chance: float = 1.0,
    ) -> Fault:
        """Put a rule in force for these methods, or all, and return it."""
        rule = Fault(
            effect, frozenset(methods) or None, zone=zone, name=name, times=times, chance=chance
        )
        self.rules.append(rule)
        return rule

    def remove(self, rule: Fault) -> None:
        """Take a rule back; none is fine."""
        if rule in self.rules:
            self.rules.remove(rule)

    def clear(self) -> None:
        """Take all rules back."""
        self.rules.clear()

    def strike(self, target: Target) -> Struck:
        """Return what hits this call, and count it."""
        return _sum_up(rule.effect for rule in list(self.rules) if self._hits(rule, target))

    def _hits(self, rule: Fault, target: Target) -> bool:
        if not rule.matches(target) or (rule.chance < 1 and self.random.random() >= rule.chance):
            return False
        if rule.times is not None:
            rule.times -= 1
            if rule.times == 0:
                self.rules.remove(rule)
        return True


def _sum_up(effects: Iterable[Effect]) -> Struck:
    before = after = 0.0
    fate: Refuse | LoseRequest | LoseReply | None = None
    operation: FailOperation | None = None
    for effect in effects:
        match effect:
            case Delay():
                before += effect.before.total_seconds()
                after += effect.after.total_seconds()
            case FailOperation():
                operation = operation or effect
            case _:
                fate = fate or effect
    return Struck(before, after, fate, operation)
