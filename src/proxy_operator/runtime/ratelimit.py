"""How long a failed key waits. Pure: every decision is a function of the reading passed in.

Shapes and defaults are client-go's `DefaultTypedControllerRateLimiter`, capped at 5 minutes.
"""

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol

from proxy_operator.runtime.objects import ObjectKey

_LARGEST_EXPONENT: Final = 62
"""Beyond it every doubling is past any cap, and floats would overflow in the end."""


class RateLimiter(Protocol):
    """Decides when a key may be tried again."""

    def when(self, key: ObjectKey, now: float) -> timedelta:
        """Count one more try and return how long it must wait; `now` in monotonic seconds."""

    def forget(self, key: ObjectKey) -> None:
        """Reset a key that is fine again: its next failure counts as the first."""

    def num_requeues(self, key: ObjectKey) -> int:
        """Return how many tries were counted since the key was last forgotten."""


class ExponentialBackoff:
    """Per key: `base`, then the double of the wait before, never over `cap`."""

    def __init__(
        self,
        base: timedelta = timedelta(milliseconds=5),
        cap: timedelta = timedelta(minutes=5),
    ) -> None:
        self._base = base.total_seconds()
        self._cap = cap.total_seconds()
        self._failures: dict[ObjectKey, int] = {}

    def when(self, key: ObjectKey, now: float) -> timedelta:  # noqa: ARG002 - the port's shape
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return timedelta(seconds=_doubled(self._base, failures, self._cap))

    def forget(self, key: ObjectKey) -> None:
        self._failures.pop(key, None)

    def num_requeues(self, key: ObjectKey) -> int:
        return self._failures.get(key, 0)


class TokenBucket:
    """For all keys together: `burst` tries at once, then `rate` a second.

    A try reserves its token even when that is still to come, so waits grow by turn.
    """

    def __init__(self, rate: float = 10.0, burst: int = 100) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None

    def when(self, key: ObjectKey, now: float) -> timedelta:  # noqa: ARG002 - the port's shape
        if self._filled_at is not None:
            gained = max(0.0, now - self._filled_at) * self._rate
            self._tokens = min(float(self._burst), self._tokens + gained)
        self._filled_at = now
        self._tokens -= 1
        return timedelta(seconds=max(0.0, -self._tokens / self._rate))

    def forget(self, key: ObjectKey) -> None:
        """Do nothing: the bucket knows no keys."""

    def num_requeues(self, key: ObjectKey) -> int:  # noqa: ARG002 - the port's shape
        return 0


class MaxOf:
    """The longest wait of several limiters, each of which counts the try."""

    def __init__(self, limiters: Sequence[RateLimiter]) -> None:
        self._limiters = tuple(limiters)

    def when(self, key: ObjectKey, now: float) -> timedelta:
        return max(limiter.when(key, now) for limiter in self._limiters)

    def forget(self, key: ObjectKey) -> None:
        for limiter in self._limiters:
            limiter.forget(key)

    def num_requeues(self, key: ObjectKey) -> int:
        return max(limiter.num_requeues(key) for limiter in self._limiters)


def default_limiter() -> RateLimiter:
    """Return the limiter of a controller: backoff per key, and one bucket for all keys."""
    return MaxOf((ExponentialBackoff(), TokenBucket()))


def jittered(attempt: int, base: timedelta, cap: timedelta) -> timedelta:
    """Return the wait after failure number `attempt` (from 0): doubling up to `cap`.

    Spread over its upper half, so that those who lost the same peer do not return all at once.
    """
    longest = _doubled(base.total_seconds(), attempt, cap.total_seconds())
    return timedelta(seconds=longest * random.uniform(0.5, 1.0))  # noqa: S311 - no secret


def _doubled(base: float, times: int, cap: float) -> float:
    return float(min(cap, base * 2 ** min(times, _LARGEST_EXPONENT)))
