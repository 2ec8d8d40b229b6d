"""Access tokens: who may call, for how long. None is asked for unless `is_required`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from proxy_operator.runtime.clock import Clock
from tests.fakes.compute.refusals import unauthorized

HOUR = timedelta(hours=1)


@dataclass
class Tokens:
    """Tokens given out so far, and how giving them out goes wrong."""

    clock: Clock
    is_required: bool = False
    lifetime: timedelta = HOUR
    delay: timedelta = timedelta()
    """How long a client waits for a token."""
    failures: int = 0
    """How many of the next requests for a token fail; -1 is all."""
    failure_status: int = 503
    """503 heals by itself; 400 says that the key was revoked."""
    issued: int = 0
    _ends_at: dict[str, float] = field(default_factory=dict)

    def issue(self) -> tuple[str, float] | None:
        """Return a new token and its seconds to live; None when this request fails."""
        if self.failures:
            self.failures -= self.failures > 0
            return None
        self.issued += 1
        token = f"fake-token-{self.issued}"
        self._ends_at[token] = self.clock.monotonic() + self.lifetime.total_seconds()
        return token, self.lifetime.total_seconds()

    def revoke_all(self) -> None:
        """Let no token be good any more."""
        self._ends_at.clear()

    def require(self, headers: Mapping[str, str]) -> None:
        """RefusedError 401 unless the call carries a token that is good."""
        if not self.is_required:
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        ends_at = self._ends_at.get(token, 0.0)
        if scheme != "Bearer" or ends_at <= self.clock.monotonic():
            raise unauthorized()
