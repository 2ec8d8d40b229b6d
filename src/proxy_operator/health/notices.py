"""What people are told of one target's guard: log lines, and Events on a few of its proxies.

The rule: only changes are told, and to MOST_EVENTS proxies at most, however many are concerned.
"""

import logging
from itertools import islice
from typing import Final

from proxy_operator.domain.event import VERDICT_HELD, VERDICT_RELEASED, EventKind
from proxy_operator.domain.proxy import Proxy
from proxy_operator.health.guard import HOLD_INTERVALS, Change
from proxy_operator.health.ports import EventRecorder
from proxy_operator.health.standings import Standings

logger = logging.getLogger(__name__)

MOST_EVENTS: Final = 16
_LOUD: Final = {Change.HELD, Change.LASTED}
_RELEASES: Final = {
    Change.RECOVERED: "answers again",
    Change.EASED: "fails too few proxies by now to be the only one at fault",
    Change.LASTED: "has failed for too long: proxies that fail against it turn unhealthy",
}


class Notices:
    """Notices about one target."""

    def __init__(self, target: str, events: EventRecorder) -> None:
        """`target` is its label, for everybody to see."""
        self._target = target
        self._events = events
        self._told: dict[str, Proxy] = {}

    def say(self, change: Change, standings: Standings, why: str) -> None:
        """Tell of a change; `why` is what the target said, if it was asked."""
        logger.log(
            logging.WARNING if change in _LOUD else logging.INFO,
            change.value,
            extra={
                "target": self._target,
                "failing": len(standings.failing),
                "healthy": standings.healthy,
                **({"target_says": why} if why else {}),
            },
        )
        if change is Change.HELD:
            self._told = _one_of_each_namespace(standings)
            self._tell(
                VERDICT_HELD,
                f"fails without a proxy too ({why}): proxies that fail against it stay healthy"
                f" for at most {HOLD_INTERVALS} intervals",
            )
        elif change in _RELEASES:
            self._tell(VERDICT_RELEASED, _RELEASES[change])
            self._told = {}

    def forget(self, uid: str) -> None:
        """Tell a proxy no more."""
        self._told.pop(uid, None)

    def _tell(self, event: EventKind, what: str) -> None:
        for proxy in self._told.values():
            self._events.record(proxy, event, f"the probe target {self._target} {what}")


def _one_of_each_namespace(standings: Standings) -> dict[str, Proxy]:
    # Who may see one namespace only should see it there; the others would read the same.
    found: dict[str | None, Proxy] = {}
    for proxy in standings.failing.values():
        found.setdefault(proxy.metadata.namespace, proxy)
    return {proxy.metadata.uid: proxy for proxy in islice(found.values(), MOST_EVENTS)}
