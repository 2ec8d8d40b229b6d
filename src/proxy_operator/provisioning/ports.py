"""What provisioning needs from outside."""

from typing import Protocol


class Recorder(Protocol):
    """Measures of provider calls."""

    def provider_called(self, provider: str, op: str, result: str, seconds: float) -> None:
        """Count a call and how long it took; never blocks, never raises.

        `result` is one of `instrumented.CallResult`.
        """
