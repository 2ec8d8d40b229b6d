"""Leases: a client's claim on a proxy, and what the store knows of each proxy to grant one."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec


class ReportResult(StrEnum):
    """What a client says of its use of a proxy."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    BANNED = "banned"


class Candidate(msgspec.Struct, kw_only=True, frozen=True):
    """A proxy as the lease store sees it. Identity is the UID, never host:port."""

    uid: str
    namespace: str
    name: str
    address: tuple[str, int] | None
    attributes: Mapping[str, str]
    is_healthy: bool
    """Healthy=True, address known, not deleting."""
    latency_millis: int
    """0 when not measured yet."""
    max_leases: int | None
    """None is no cap; 0 is drained."""


class Lease(msgspec.Struct, kw_only=True, frozen=True):
    """A granted claim."""

    id: str
    uid: str
    """UID of the leased Proxy."""
    namespace: str
    name: str
    target: str
    """What the client meant to fetch, opaque; empty when it did not say."""
    ttl_seconds: int
    expires_at: datetime
    """Wall clock, for people; the store decides by its monotonic clock."""


class NoMatch(msgspec.Struct, kw_only=True, frozen=True):
    """Why no lease was granted. Each matching proxy counts once, in this order of precedence."""

    considered: int
    unhealthy: int
    at_capacity: int
    in_cooldown: int
    retry_after_seconds: int | None
    """Whole seconds, rounded up, until the first lease or cooldown that stands in the way ends;
    None when nothing is due back."""
