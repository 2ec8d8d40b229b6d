"""What the discovery service needs from outside."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Protocol

from proxy_operator.domain.lease import Lease, NoMatch, ReportResult
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials


class LeaseStore(Protocol):
    """Leases and cooldowns. Every call is one decision: synchronous and atomic."""

    def acquire(
        self, *, selector: Mapping[str, str], namespace: str | None, target: str, ttl: timedelta
    ) -> Lease | NoMatch:
        """Grant the best candidate: fewest active leases, then latency, name, namespace."""

    def release(self, lease_id: str) -> None:
        """End a lease; unknown and ended ones are ignored."""

    def report(self, lease_id: str, result: ReportResult, target: str | None) -> bool:
        """Note how the use went; False when the lease is unknown.

        Anything but ok blocks the proxy for the target of the report, else of the lease, else
        for everybody. Ended leases still resolve for the cooldown window.
        """

    def renew(self, lease_id: str, ttl: timedelta) -> Lease | None:
        """Let a lease end `ttl` from now; None when it is unknown or has ended."""

    def leases(self) -> Iterable[Lease]:
        """Return the active leases, soonest to expire first."""

    def active_leases(self, uid: str) -> int:
        """Return how many leases a proxy carries now."""


class CredentialsReader(Protocol):
    """Finds what a proxy asks of its clients."""

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return credentials, or None when the proxy needs none.

        ValueError says why they are missing or unusable: such a proxy cannot be leased.
        """


class Recorder(Protocol):
    """Measures of leasing."""

    def lease_requested(self, outcome: str) -> None:
        """Count a request: granted, no_match or invalid."""
