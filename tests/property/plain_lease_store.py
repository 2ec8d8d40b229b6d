"""The lease store as its rules read: every decision scans the whole fleet.

Slow and obvious on purpose: the indexed store is held equal to it, and measured against it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from proxy_operator.domain.lease import Candidate, NoMatch


@dataclass(eq=False)
class PlainClaim:
    uid: str
    target: str
    address: tuple[str, int] | None
    expires: float
    ended: float | None = None


@dataclass
class PlainLeaseStore:
    """Takes the ids and the time from outside, so that it can follow another store."""

    window: float
    candidates: dict[str, Candidate] = field(default_factory=dict)
    addresses: dict[str, tuple[str, int]] = field(default_factory=dict)
    claims: dict[str, PlainClaim] = field(default_factory=dict)
    cooldowns: dict[tuple[str, str], float] = field(default_factory=dict)

    def settle(self, now: float) -> None:
        for claim in self.claims.values():
            if claim.ended is None and claim.expires <= now:
                claim.ended = claim.expires
        self.claims = {
            k: c for k, c in self.claims.items() if c.ended is None or c.ended + self.window > now
        }
        self.cooldowns = {k: end for k, end in self.cooldowns.items() if end > now}

    def active(self, uid: str) -> list[PlainClaim]:
        return [c for c in self.claims.values() if c.uid == uid and c.ended is None]

    def blocked_until(self, uid: str, target: str) -> float | None:
        ends = [self.cooldowns[uid, t] for t in {"", target} if (uid, t) in self.cooldowns]
        return max(ends, default=None)

    def choose(
        self, selector: Mapping[str, str], namespace: str | None, target: str, now: float
    ) -> str | NoMatch:
        """Return the UID of the best candidate, or why there is none."""
        self.settle(now)
        open_ones, dues = [], []
        considered = unhealthy = at_capacity = in_cooldown = 0
        for c in self.candidates.values():
            if namespace is not None and c.namespace != namespace:
                continue
            if any(c.attributes.get(k) != v for k, v in selector.items()):
                continue
            considered += 1
            active = self.active(c.uid)
            end = self.blocked_until(c.uid, target)
            if not c.is_healthy:
                unhealthy += 1
            elif c.max_leases is not None and len(active) >= c.max_leases:
                at_capacity += 1
                if c.max_leases:
                    dues.append(min(claim.expires for claim in active))
            elif end is not None:
                in_cooldown += 1
                dues.append(end)
            else:
                open_ones.append((len(active), c.latency_millis, c.name, c.namespace, c.uid))
        if open_ones:
            return min(open_ones)[-1]
        return NoMatch(
            considered=considered,
            unhealthy=unhealthy,
            at_capacity=at_capacity,
            in_cooldown=in_cooldown,
            retry_after_seconds=max(1, ceil(round(min(dues) - now, 6))) if dues else None,
        )

    def grant(self, lease_id: str, uid: str, target: str, expires: float) -> None:
        address = self.addresses.get(uid)
        self.claims[lease_id] = PlainClaim(uid, target, address, expires)

    def release(self, lease_id: str, now: float) -> None:
        self.settle(now)
        claim = self.claims.get(lease_id)
        if claim is not None and claim.ended is None:
            claim.ended = now

    def renew(self, lease_id: str, expires: float, now: float) -> bool:
        self.settle(now)
        claim = self.claims.get(lease_id)
        if claim is None or claim.ended is not None:
            return False
        claim.expires = expires
        return True

    def report(self, lease_id: str, target: str | None, now: float, *, is_ok: bool) -> bool:
        self.settle(now)
        claim = self.claims.get(lease_id)
        if claim is None:
            return False
        if not is_ok and claim.address == self.addresses.get(claim.uid):
            self.cooldowns[claim.uid, target or claim.target] = now + self.window
        return True

    def upsert(self, candidate: Candidate, now: float) -> None:
        self.settle(now)
        old = self.candidates.get(candidate.uid)
        if old is not None and old.address != candidate.address:
            for claim in self.active(candidate.uid):
                claim.ended = now
        for other in [*self.candidates.values()]:
            same_name = (other.namespace, other.name) == (candidate.namespace, candidate.name)
            if same_name and other.uid != candidate.uid:
                self.remove(other.uid)
        known = self.addresses.get(candidate.uid)
        if candidate.address is not None:
            if known is not None and known != candidate.address:
                self.cooldowns = {k: e for k, e in self.cooldowns.items() if k[0] != candidate.uid}
            self.addresses[candidate.uid] = candidate.address
        self.candidates[candidate.uid] = candidate

    def remove(self, uid: str) -> None:
        self.candidates.pop(uid, None)
        self.addresses.pop(uid, None)
        self.claims = {k: c for k, c in self.claims.items() if c.uid != uid}
        self.cooldowns = {k: e for k, e in self.cooldowns.items() if k[0] != uid}
