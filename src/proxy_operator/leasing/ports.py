"""What the leasing package needs from outside, and what its feed speaks to."""

from typing import Protocol

from proxy_operator.domain.lease import Candidate
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials


class CandidateSink(Protocol):
    """Learns of every proxy that may be leased, now or later."""

    def upsert(self, candidate: Candidate) -> None:
        """Take in a candidate, or what changed of it. Its UID is its identity."""

    def remove(self, uid: str) -> None:
        """Let a candidate go, with its leases and cooldowns; unknown ones are ignored."""


class CredentialsReader(Protocol):
    """Finds what a proxy asks of its clients."""

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        """Return credentials, or None when the proxy needs none.

        ValueError says why they are missing, unusable or not those of its instance: such a proxy
        is not offered.
        """
