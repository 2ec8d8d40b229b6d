"""One line per request worth a line.

Routes are logged by their pattern: neither ids, query, headers nor bodies reach the log.
"""

import logging
import time
from typing import Final

from proxy_operator.adapters.web.routes import Route

logger = logging.getLogger(__name__)

_ORDINARY: Final = frozenset({404, 409})
"""Statuses over 399 that are part of normal work."""
_QUIET: Final = 1.0
"""Seconds between two lines about refused requests, so that nobody can fill the disk."""


class AccessLog:
    """Served requests at debug; refused ones at info, at most one line a second."""

    def __init__(self) -> None:
        self._next_at = 0.0
        self._suppressed = 0

    def served(self, method: str, route: Route | None, status: int, seconds: float) -> None:
        """Log a request that was answered."""
        if status < 400 or status in _ORDINARY:
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug("request served", extra=_fields(method, route, status, seconds))
            return
        now = time.monotonic()
        if now < self._next_at:
            self._suppressed += 1
            return
        self._next_at = now + _QUIET
        fields = _fields(method, route, status, seconds)
        logger.info("request refused", extra={**fields, "suppressed": self._suppressed})
        self._suppressed = 0


def _fields(
    method: str, route: Route | None, status: int, seconds: float
) -> dict[str, str | int | None]:
    return {
        "method": method,
        "route": route.path if route else None,
        "status": status,
        "micros": round(seconds * 1e6),
    }
