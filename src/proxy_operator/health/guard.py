"""Whose fault it is when most proxies of one target fail at once: theirs, or the target's.

Pure: counts and moments go in, the guard's next state comes out; moments are seconds of a monotonic
clock. The rule: a guard keeps healthy proxies from turning unhealthy, for a while. It never makes
one healthy, and it never outlasts HOLD_INTERVALS.
"""

from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from proxy_operator.domain.health import ProbeError
from proxy_operator.health.ports import ProbeOutcome

LEAST: Final = 3
"""So many proxies must fail, or get through again, to say something of the target."""
HOLD_INTERVALS: Final = 3

# How a gateway says that it did not get through to the target (RFC 9110 section 15.6).
_GATEWAY: Final = {502, 503, 504}
_SEEN_THROUGH_A_PROXY: Final = {
    ProbeError.TIMEOUT,
    ProbeError.TLS,
    ProbeError.STATUS,
    ProbeError.PROTOCOL,
}


def is_target_side(outcome: ProbeOutcome) -> bool:
    """Tell whether a failed probe can be the target's fault, as seen through a proxy.

    What happens before the proxy itself is reached is not: its name (dns), its port (refused), its
    own TLS, slow connecting. Neither is what only a proxy says: 407 (auth), or a CONNECT refused by
    its rules (403, 500). What is left may be either's. A slow or missing answer, a bad certificate
    in the tunnel, a bad status, or a peer that hangs up or talks nonsense, as some proxies do when
    the target does: so the target is asked.
    """
    if outcome.phases.connect is None:
        return False
    if outcome.connect_status is not None:
        return outcome.connect_status in _GATEWAY
    return outcome.error in _SEEN_THROUGH_A_PROXY


class Stage(Enum):
    """How far a guard has gone."""

    QUIET = auto()
    HOLDING = auto()
    SPENT = auto()
    """It held for as long as it may, and most proxies still fail."""


class Answer(Enum):
    """What the target said when it was asked without a proxy."""

    WELL = auto()
    FAILS = auto()
    UNKNOWN = auto()
    """It could not be asked: nothing is held on a guess."""


class Change(StrEnum):
    """What a step came to."""

    ASK = "most proxies fail against a target"
    HELD = "verdicts held"
    NOT_HELD = "verdicts not held"
    RECOVERED = "verdicts released: the target answers again"
    EASED = "verdicts released: too few proxies fail by now"
    LASTED = "verdicts released: the target has failed for too long"


class Guard(NamedTuple):
    """What is known of one target."""

    stage: Stage = Stage.QUIET
    is_asking: bool = False
    """It is being asked directly; there is never a second one."""
    asked_at: float | None = None
    ends_at: float = 0.0
    """When the last hold must end, or had to."""
    released_at: float | None = None
    """When the last hold ended."""
    well_at: float | None = None
    """When the last hold ended because the target was well."""


class Facts(NamedTuple):
    """What a step is taken on."""

    now: float
    interval: float
    """Between two probes of a proxy, in seconds."""
    healthy: int
    """Proxies that were healthy before their last probe, or are now."""
    failing: int
    """Those of them whose last probe failed in a way that may be the target's fault."""
    passes: int = 0
    """Probes in a row that got through proxies which had failed the time before."""
    answer: Answer | None = None

    @property
    def is_mass_failure(self) -> bool:
        """Tell whether so many fail that the target comes under suspicion."""
        return is_mass_failure(self.healthy, self.failing)


def is_mass_failure(healthy: int, failing: int) -> bool:
    """Tell whether most healthy proxies fail.

    The last probe of each counts, so all of these lie within one interval, and a proxy that has
    turned unhealthy drops out with its next probe.
    """
    return failing >= LEAST and failing * 2 > healthy


def step(guard: Guard, facts: Facts) -> tuple[Guard, Change | None]:
    """Take one step, upon a probe, an answer of the target, or a moment that has come."""
    if guard.stage is Stage.HOLDING:
        return _while_holding(guard, facts)
    if guard.stage is Stage.SPENT:
        # Not before most proxies stopped failing: one outage, one hold.
        is_over = not facts.is_mass_failure
        return (guard._replace(stage=Stage.QUIET), None) if is_over else (guard, None)
    if facts.answer is not None:
        return _answered(guard, facts)
    if not guard.is_asking and facts.is_mass_failure and _may_ask(guard, facts):
        return guard._replace(is_asking=True, asked_at=facts.now), Change.ASK
    return guard, None


def _while_holding(guard: Guard, facts: Facts) -> tuple[Guard, Change | None]:
    ended = guard._replace(stage=Stage.QUIET, is_asking=False, released_at=facts.now)
    if facts.now >= guard.ends_at:
        return ended._replace(stage=Stage.SPENT), Change.LASTED
    is_eased = not facts.is_mass_failure
    if facts.answer is Answer.WELL or facts.passes >= (1 if is_eased else LEAST):
        return ended._replace(well_at=facts.now), Change.RECOVERED
    if is_eased:
        # They went, or broke in ways of their own: of the target that says nothing.
        return ended, Change.EASED
    if facts.answer is not None:
        return guard._replace(is_asking=False), None
    if not guard.is_asking and _may_ask(guard, facts):
        return guard._replace(is_asking=True, asked_at=facts.now), Change.ASK
    return guard, None


def _answered(guard: Guard, facts: Facts) -> tuple[Guard, Change]:
    guard = guard._replace(is_asking=False)
    if facts.answer is not Answer.FAILS or not facts.is_mass_failure:
        return guard, Change.NOT_HELD
    asked_at = facts.now if guard.asked_at is None else guard.asked_at
    # A target that fails again so soon has not been well in between: its time runs on.
    is_same_outage = guard.released_at is not None and asked_at - guard.released_at < facts.interval
    ends_at = guard.ends_at if is_same_outage else asked_at + HOLD_INTERVALS * facts.interval
    if ends_at <= facts.now:
        return guard._replace(stage=Stage.SPENT), Change.NOT_HELD
    return guard._replace(stage=Stage.HOLDING, ends_at=ends_at), Change.HELD


def _may_ask(guard: Guard, facts: Facts) -> bool:
    return guard.asked_at is None or facts.now >= guard.asked_at + facts.interval


def keeps(guard: Guard, now: float, began_at: float) -> bool:
    """Tell whether a healthy proxy stays so though a probe begun at `began_at` failed."""
    if guard.stage is Stage.HOLDING:
        return now < guard.ends_at
    return (guard.stage is Stage.QUIET and guard.is_asking) or is_stale(guard, began_at)


def is_stale(guard: Guard, began_at: float) -> bool:
    """Tell whether a failed probe was on its way before the target was well again.

    It says nothing of the proxy, and nothing of the target as it is now.
    """
    return guard.well_at is not None and began_at < guard.well_at


def next_moment(guard: Guard, interval: float) -> float | None:
    """Return when the next step is due though nothing happens, or None."""
    if guard.stage is not Stage.HOLDING:
        return None
    if guard.is_asking or guard.asked_at is None:
        return guard.ends_at
    return min(guard.ends_at, guard.asked_at + interval)
