"""What the leasing package needs from outside, and what its feed speaks to."""

from typing import Protocol

from proxy_operator.domain.lease import Candidate


class CandidateSink(Protocol):
    """Learns of every proxy that may be leased, now or later."""

    def upsert(self, candidate: Candidate) -> None:
        """Take in a candidate, or what changed of it. Its UID is its identity."""

    def remove(self, uid: str) -> None:
        """Let a candidate go, with its leases and cooldowns; unknown ones are ignored."""
