"""The lease store: who holds which proxy until when, and where it must not be used for a while.

The rule: no await anywhere, so that every call is one decision; and every call first settles what
time has ended, so that correctness never depends on the sweep.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import count
from math import ceil, inf
from typing import Final

import msgspec

from proxy_operator.domain.lease import Candidate, Lease, NoMatch, ReportResult
from proxy_operator.leasing.cooldowns import Cooldowns
from proxy_operator.leasing.expiries import Expiries
from proxy_operator.leasing.group import EVERYBODY
from proxy_operator.leasing.index import Index
from proxy_operator.leasing.shape import Claim, Record, View
from proxy_operator.leasing.tokens import TokenSource
from proxy_operator.runtime.clock import Clock

COOLDOWN_WINDOW: Final = timedelta(minutes=15)

_NOTHING: Final = NoMatch(
    considered=0, unhealthy=0, at_capacity=0, in_cooldown=0, retry_after_seconds=None
)


class LeaseStore:
    """Leases and cooldowns of one process. A restart forgets them.

    The monotonic clock decides; the wall clock only tells people.
    """

    def __init__(self, clock: Clock, cooldown_window: timedelta = COOLDOWN_WINDOW) -> None:
        """Block for `cooldown_window` after a report, and take late reports for as long."""
        self._clock = clock
        self._window = cooldown_window.total_seconds()
        self._index = Index()
        self._records: dict[str, Record] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._claims: dict[str, Claim] = {}
        self._expiries = Expiries()
        self._ended: dict[str, Claim] = {}
        self._cooldowns = Cooldowns(cooldown_window)
        self._serials = count(1)
        self._tokens = TokenSource()
        self._nothing_before = inf
        """Until then time ends nothing: most calls need not look."""

    def acquire(
        self, *, selector: Mapping[str, str], namespace: str | None, target: str, ttl: timedelta
    ) -> Lease | NoMatch:
        """Grant the best candidate: fewest active leases, then latency, name, namespace."""
        now = self._settle()
        view = self._index.view(namespace, selector)
        if view is None:
            return _NOTHING
        blocked_for = target if self._cooldowns.is_known(target) else EVERYBODY
        best = view.best(blocked_for)
        if best is None:
            return self._refusal(view, blocked_for, now)
        return self._grant(best[-2], target, ttl, now)

    def release(self, lease_id: str) -> None:
        """End a lease; unknown and ended ones are ignored."""
        now = self._settle()
        claim = self._claims.get(lease_id)
        if claim is not None:
            self._end(claim, now)

    def report(self, lease_id: str, result: ReportResult, target: str | None) -> bool:
        """Note how the use went; False when the lease is unknown.

        Anything but ok blocks the proxy for the target of the report, else of the lease, else
        for everybody. Ended leases still resolve for the cooldown window. What is said of an
        address that the proxy no longer has does not block the new one.
        """
        now = self._settle()
        claim = self._claims.get(lease_id) or self._ended.get(lease_id)
        if claim is None or claim.record.shape is None:
            return False
        if result is not ReportResult.OK and claim.address == claim.record.address:
            self._cooldowns.start(claim.record, target or claim.lease.target or EVERYBODY, now)
            self._expect(now + self._window)
            self._index.refresh(claim.record)
        return True

    def renew(self, lease_id: str, ttl: timedelta) -> Lease | None:
        """Let a lease end `ttl` from now; None when it is unknown or has ended."""
        now = self._settle()
        claim = self._claims.get(lease_id)
        if claim is None:
            return None
        claim.lease = msgspec.structs.replace(
            claim.lease,
            ttl_seconds=ceil(ttl.total_seconds()),
            expires_at=self._clock.now() + ttl,
        )
        claim.record.move_claim(claim, now + ttl.total_seconds())
        self._expiries.expect(claim)
        self._expect(claim.expires)
        self._index.refresh(claim.record)
        return claim.lease

    def leases(self) -> Iterable[Lease]:
        """Return the active leases, soonest to expire first."""
        self._settle()
        claims = sorted(self._claims.values(), key=lambda claim: (claim.expires, claim.serial))
        return [claim.lease for claim in claims]

    def active_leases(self, uid: str) -> int:
        """Return how many leases a proxy carries now."""
        self._settle()
        record = self._records.get(uid)
        return len(record.claims) if record is not None else 0

    def total_leases(self) -> int:
        """Return how many leases are active now."""
        self._settle()
        return len(self._claims)

    def upsert(self, candidate: Candidate) -> None:
        """Take in a candidate, or what changed of it.

        A lost or another address ends the leases; another address ends the cooldowns too.
        """
        now = self._settle()
        name = (candidate.namespace, candidate.name)
        if self._uids.get(name, candidate.uid) != candidate.uid:
            self.remove(self._uids[name])
        record = self._records.get(candidate.uid)
        if record is None:
            record = self._records[candidate.uid] = Record(candidate)
            self._uids[name] = candidate.uid
            self._index.add(record)
            return
        if candidate.address != record.candidate.address:
            for claim in [*record.claims.values()]:
                self._end(claim, now)
        self._update(record, candidate)

    def remove(self, uid: str) -> None:
        """Let a candidate go, with its leases and cooldowns; unknown ones are ignored."""
        self._settle()
        record = self._records.pop(uid, None)
        if record is None:
            return
        self._uids.pop((record.candidate.namespace, record.candidate.name), None)
        for claim in record.claims.values():
            del self._claims[claim.id]
            claim.expiry = None
        self._end_cooldowns(record)
        self._index.remove(record)

    def sweep(self) -> None:
        """Free what time has ended."""
        self._settle()

    def _grant(self, record: Record, target: str, ttl: timedelta, now: float) -> Lease:
        candidate, seconds = record.candidate, ttl.total_seconds()
        lease = Lease(
            id=self._tokens.take(),
            uid=candidate.uid,
            namespace=candidate.namespace,
            name=candidate.name,
            target=target,
            ttl_seconds=ceil(seconds),
            expires_at=self._clock.now() + ttl,
        )
        claim = Claim(record, lease, now + seconds, next(self._serials))
        record.add_claim(claim)
        self._claims[lease.id] = claim
        self._expiries.expect(claim)
        self._expect(claim.expires)
        self._index.refresh(record, is_worse=True)
        return lease

    def _refusal(self, view: View, target: str, now: float) -> NoMatch:
        in_cooldown = view.considered - view.unhealthy - view.at_capacity
        lease_end = view.due()
        due = inf if lease_end is None else lease_end[0]
        if in_cooldown:
            due = self._cooldowns.first_end(target, view.members, due)
        return NoMatch(
            considered=view.considered,
            unhealthy=view.unhealthy,
            at_capacity=view.at_capacity,
            in_cooldown=in_cooldown,
            retry_after_seconds=None if due == inf else whole_seconds(due - now),
        )

    def _end(self, claim: Claim, at: float) -> None:
        del self._claims[claim.id]
        claim.record.drop_claim(claim)
        claim.expires, claim.expiry = at, None
        self._ended[claim.id] = claim
        self._expect(at + self._window)
        self._index.refresh(claim.record)

    def _update(self, record: Record, candidate: Candidate) -> None:
        old, record.candidate = record.candidate, candidate
        if candidate.address is not None and candidate.address != record.address:
            if record.address is not None:
                self._end_cooldowns(record)
            record.address = candidate.address
        is_moved = (old.namespace, old.attributes) != (candidate.namespace, candidate.attributes)
        if (old.namespace, old.name) != (candidate.namespace, candidate.name):
            self._uids.pop((old.namespace, old.name), None)
            self._uids[candidate.namespace, candidate.name] = candidate.uid
        if is_moved:
            self._index.remove(record)
            self._index.add(record)
        else:
            self._index.refresh(record)

    def _end_cooldowns(self, record: Record) -> None:
        for target in [*record.cooling]:
            if self._cooldowns.end(record, target):
                self._index.quiet(target)

    def _settle(self) -> float:
        """End what time has ended, in the order it ended, and return the time."""
        now = self._clock.monotonic()
        if now < self._nothing_before:
            return now
        while (expiry := self._expiries.first()) is not None and expiry[0] <= now:
            self._end(expiry[2], expiry[0])
        while (over := self._cooldowns.ended(now)) is not None:
            record, target = over
            if self._cooldowns.end(record, target):
                self._index.quiet(target)
            self._index.refresh(record)
        while (forgotten_at := self._first_forgotten_at()) <= now:
            del self._ended[next(iter(self._ended))]
        next_expiry = inf if expiry is None else expiry[0]
        self._nothing_before = min(next_expiry, self._cooldowns.next_end(), forgotten_at)
        return now

    def _first_forgotten_at(self) -> float:
        """Return when an ended lease can be reported no longer, infinite when there is none."""
        for claim in self._ended.values():
            return claim.expires + self._window
        return inf

    def _expect(self, moment: float) -> None:
        """Settle no later than that."""
        self._nothing_before = min(self._nothing_before, moment)


def whole_seconds(span: float) -> int:
    """Round up; what is left of adding and subtracting floats is no second."""
    return max(1, ceil(round(span, 6)))
