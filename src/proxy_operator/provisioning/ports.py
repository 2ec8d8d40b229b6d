"""What provisioning needs from outside."""

from typing import Protocol


class Recorder(Protocol):
    """Measures of provider calls. Nothing here blocks or raises."""

    def provider_served(self, provider: str) -> None:
        """Take note of a provider, so that every count of it is there from the start, at 0."""

    def provider_called(self, provider: str, op: str, result: str, seconds: float) -> None:
        """Count a call and how long it took; `result` is one of `instrumented.CallResult`."""

    def limit_reached(self, provider: str, limit: str) -> None:
        """Count a refusal by the operator's own limit, one of `errors.OwnLimit`."""
