"""One instance at a time tries a zone that has just had none left; the others go elsewhere.

In memory: after a restart each place is tried once more, by every instance that wants it.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from proxy_operator.provisioning.errors import QuotaExceededError, StockOutError
from proxy_operator.runtime.clock import Clock

FIRST_HOLD: Final = timedelta(seconds=30)
LONGEST_HOLD: Final = timedelta(minutes=30)
PROBE_TIME: Final = timedelta(minutes=5)
"""By then it is known what came of a create, or never will be."""


class Place(NamedTuple):
    """Where capacity may run out."""

    zone: str
    machine_type: str


@dataclass(slots=True)
class _Hold:
    """Moments are seconds of the monotonic clock."""

    is_stock_out: bool
    failures: int = 0
    failed_at: float = 0.0
    until: float = 0.0
    prober: str = ""
    prober_until: float = 0.0


class Breaker:
    """Remembers which places failed lately, and who tries them now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._holds: dict[Place, _Hold] = {}

    def admit(self, place: Place, name: str) -> None:
        """Let this instance try the place; QuotaExceededError or StockOutError when it must not."""
        refusal = self.refusal(place, name)
        if refusal is not None:
            raise refusal
        hold = self._holds.get(place)
        if hold is not None:
            hold.prober = name
            hold.prober_until = self._clock.monotonic() + PROBE_TIME.total_seconds()

    def refusal(self, place: Place, name: str) -> QuotaExceededError | None:
        """Return why this instance must not try the place now, or None."""
        hold, now = self._holds.get(place), self._clock.monotonic()
        if hold is None:
            return None
        is_probed = hold.prober not in {"", name} and now < hold.prober_until
        if now >= hold.until and not is_probed:
            return None
        where = f"zone {place.zone} for machine type {place.machine_type}"
        if hold.is_stock_out:
            return StockOutError(f"no capacity was left in {where}; it is tried again soon")
        return QuotaExceededError(f"a quota was exceeded in {where}; it is tried again soon")

    def failed(self, place: Place, error: QuotaExceededError) -> None:
        """Learn that a create came to nothing there for want of capacity or quota."""
        now = self._clock.monotonic()
        is_stock_out = isinstance(error, StockOutError)
        hold = self._holds.setdefault(place, _Hold(is_stock_out))
        hold.is_stock_out = is_stock_out
        hold.failed_at = now
        if now < hold.until:
            return  # sent before the place was known to be out: one failure is one failure
        hold.failures += 1
        hold.until = (
            now + min(FIRST_HOLD * (1 << min(hold.failures - 1, 10)), LONGEST_HOLD).total_seconds()
        )
        hold.prober = ""

    def ran(self, place: Place, accepted_at: float) -> None:
        """Learn that an instance runs there whose create was accepted at that moment."""
        hold = self._holds.get(place)
        if hold is not None and accepted_at >= hold.failed_at:
            del self._holds[place]

    def leave(self, place: Place, name: str) -> None:
        """Learn that this try told nothing about the place."""
        hold = self._holds.get(place)
        if hold is not None and hold.prober == name:
            hold.prober = ""
