"""What the controllers need from outside. Only `app.wiring` knows who answers."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from proxy_operator.domain.event import EventKind
from proxy_operator.domain.health import HealthReport
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import EnvironmentProviderError


class HealthReader(Protocol):
    """The health engine's side of the split: it owns verdicts, the reconciler shows them."""

    def report(self, uid: str) -> HealthReport | None:
        """Return the verdict to show for this Proxy, or None when nothing is to be said.

        None is what the engine answers until its first report since the start, a taken-over
        verdict included, and again after the address changed. The reconciler then leaves an
        existing Healthy condition as it is, unless the address it speaks of has changed or gone:
        clearing that one is the reconciler's own duty. It is told by a notice when a report came.
        """

    def has_target(self, proxy: Proxy) -> bool:
        """Tell whether there is anything to probe this proxy against."""


class Fingerprinter(Protocol):
    """Digests secret content slowly, without holding up the loop."""

    async def fingerprint(self, *, user_data: bytes | None, credentials: Credentials | None) -> str:
        """Return `domain.names.secret_fingerprint` of the content, salted for this cluster."""


class EventRecorder(Protocol):
    """Tells people what happened to an object."""

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        """Queue an Event; never blocks, never raises. Equal ones are aggregated."""


class SweepResult(StrEnum):
    """How a look for orphans at one provider ended."""

    SUCCESS = "success"
    INCOMPLETE = "incomplete"
    """What could not be listed may hold orphans still."""
    FAILED = "failed"
    """Nothing was looked at: neither side may be guessed."""


class SweepRecorder(Protocol):
    """Measures of the sweep for orphans. Nothing here blocks or raises."""

    def swept_from_now(self, provider: str) -> None:
        """Take note of a provider, so that every count of it is there from the start, at 0."""

    def swept(self, provider: str, result: SweepResult, at: datetime) -> None:
        """Count a look at a provider that ended at that moment."""

    def orphan_deleted(self, provider: str) -> None:
        """Count an orphan that the provider was asked to delete, and said yes."""

    def orphans_left(self, provider: str, count: int) -> None:
        """Note how many orphans a look has seen and left where they cost money."""


class ProviderRegistry(Protocol):
    """The providers this operator can use, decorated and ready."""

    def get(self, name: str) -> Provider:
        """Return a provider. EnvironmentProviderError says what is missing, and how to get it."""

    def available(self) -> Iterator[tuple[str, Provider]]:
        """Yield every provider that can be used now, with its name."""

    def unusable(self) -> Iterator[tuple[str, EnvironmentProviderError]]:
        """Yield every provider that was asked for and cannot be used now, and what is missing.

        It may have instances; nobody can see them.
        """
