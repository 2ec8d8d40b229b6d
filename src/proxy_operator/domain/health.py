"""What a probe found, and what the health engine makes of it."""

from datetime import datetime
from enum import StrEnum

import msgspec


class ProbeError(StrEnum):
    """Why a probe failed."""

    REFUSED = "refused"
    TIMEOUT = "timeout"
    DNS = "dns"
    AUTH = "auth"
    """The proxy answered 407 to our credentials."""
    TLS = "tls"
    STATUS = "status"
    """An HTTP answer with another status than expected."""
    PROTOCOL = "protocol"
    NOT_ALLOWED = "not allowed"
    """The operator's own lists refuse it: nothing was sent."""


class HealthReport(msgspec.Struct, kw_only=True, frozen=True):
    """The engine's verdict on one proxy, as the reconciler represents it in status."""

    is_healthy: bool
    error: ProbeError | None = None
    """Class of the failure behind an unhealthy verdict."""
    detail: str = ""
    """One clause for people, without times or ids: `the proxy refused the connection`."""
    latency_millis: int | None = None
    """Time to first byte through the proxy, when healthy."""
    checked_at: datetime
