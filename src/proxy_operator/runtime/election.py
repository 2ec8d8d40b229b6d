"""The rules of an election by a record that all candidates write to. Pure: no I/O, no clock.

The rule: a record says who leads, never since when by our clocks. Its times come from the holder's
wall clock and are only shown; that the record changed is what counts, and when we saw it change.
Names, defaults and semantics are those of client-go's `tools/leaderelection`.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

JITTER: Final = 1.2
"""A candidate waits for the retry period and up to this many times of it more."""

_RELEASED_FOR: Final = timedelta(seconds=1)
"""What a record that nobody holds says of its duration: the API allows no zero."""

_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class LockRecord:
    """What the record says."""

    holder: str = ""
    """Identity of who leads; empty when nobody does."""
    duration: timedelta = timedelta(0)
    """How long after a change it still counts; not positive when nobody said."""
    acquired_at: datetime | None = None
    renewed_at: datetime | None = None
    transitions: int = 0
    """How often a new holder took over from another one, or from nobody."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record as it was read or written last."""

    record: LockRecord
    origin: object
    """What the store needs to replace exactly this version; its own business."""


class LockStore(Protocol):
    """Keeps one record. Other failures than those named are UnavailableError, ForbiddenError."""

    @property
    def name(self) -> str:
        """The record's name, for people."""

    async def get(self) -> StoredRecord:
        """Return the record. NotFoundError: nobody has made it, or somebody deleted it."""

    async def create(self, record: LockRecord) -> StoredRecord:
        """Make the record. AlreadyExistsError: somebody was faster, read it."""

    async def update(self, stored: StoredRecord, record: LockRecord) -> StoredRecord:
        """Replace that version of the record. ConflictError: it has changed, read it."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long things may take; ValueError when they do not fit together."""

    lease_duration: timedelta = timedelta(seconds=15)
    """Others take over when they have seen no renewal for this long. Whole seconds."""
    renew_deadline: timedelta = timedelta(seconds=10)
    """A leader that could not renew for this long no longer leads."""
    retry_period: timedelta = timedelta(seconds=2)
    """Between two renewals, and between two looks at another one's record."""

    def __post_init__(self) -> None:
        if self.lease_duration % timedelta(seconds=1):
            raise ValueError("the lease duration must be whole seconds")
        if self.lease_duration <= self.renew_deadline:
            raise ValueError("the lease duration must be longer than the renew deadline")
        if self.retry_period <= timedelta(0):
            raise ValueError("the retry period must be longer than nothing")
        if self.renew_deadline <= self.retry_period * JITTER:
            raise ValueError(f"the renew deadline must be over {JITTER} times the retry period")

    @property
    def attempt(self) -> timedelta:
        """For one request: a connection that hangs leaves time for another one."""
        return self.renew_deadline / 2


class Observation:
    """What one candidate has seen of the record, and when, on its own monotonic clock."""

    def __init__(self, identity: str, lease_duration: timedelta) -> None:
        """`lease_duration` serves for records that have none of their own."""
        self._identity = identity
        self._lease_duration = lease_duration
        self._record: LockRecord | None = None
        self._changed_at = 0.0

    @property
    def record(self) -> LockRecord | None:
        """The record seen last. One that was deleted since still counts until it expires.

        Its holder will make it again, and may act until then.
        """
        return self._record

    @property
    def is_ours(self) -> bool:
        return self._record is not None and self._record.holder == self._identity

    @property
    def rival(self) -> str:
        """Return who else holds the record, expired or not; empty when nobody does."""
        return "" if self._record is None or self.is_ours else self._record.holder

    def see(self, record: LockRecord, now: float) -> None:
        """Take note of a record. `now` must be read after it came, never before."""
        if record != self._record:
            self._record = record
            self._changed_at = now

    def free_in(self, now: float) -> float:
        """Return the seconds until this candidate may claim the record; 0.0 when it may now."""
        if self._record is None or not self.rival:
            return 0.0
        lasts = self._record.duration if self._record.duration > timedelta(0) else None
        expires_at = self._changed_at + (lasts or self._lease_duration).total_seconds()
        return max(0.0, expires_at - now)


def claimed(
    seen: LockRecord | None, identity: str, lease_duration: timedelta, now: datetime
) -> LockRecord:
    """Return the record by which `identity` renews what it holds, or takes what is free."""
    if seen is None:
        return LockRecord(identity, lease_duration, now, now, 0)
    if seen.holder != identity:
        return LockRecord(identity, lease_duration, now, now, seen.transitions + 1)
    # A wall clock set back must not hit the same time twice: to others that is no renewal.
    renewed_at = now + _TICK if now == seen.renewed_at else now
    return replace(seen, duration=lease_duration, renewed_at=renewed_at)


def released(seen: LockRecord, now: datetime) -> LockRecord:
    """Return the record by which its holder lets the next one in at once."""
    return LockRecord("", _RELEASED_FOR, now, now, seen.transitions)
