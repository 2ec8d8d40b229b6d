"""The verdicts as the rest of the operator sees them, and the bell that says one changed.

A report is visible only once its notice was accepted, so what is shown and what the engine
believes to have said never drift apart.
"""

from collections.abc import Callable

from proxy_operator.domain.health import HealthReport
from proxy_operator.runtime.objects import ObjectKey

Notify = Callable[[ObjectKey], bool]
"""Ask for a reconcile of that Proxy. False: could not be taken now. Must not block or await."""


class HealthBoard:
    """Reports by UID of the Proxy."""

    def __init__(self) -> None:
        self._reports: dict[str, HealthReport] = {}
        self._notify: Notify | None = None

    def subscribe(self, notify: Notify) -> None:
        """Send notices there from now on; before the first call every notice is refused."""
        self._notify = notify

    def report(self, uid: str) -> HealthReport | None:
        """Return the last accepted report since the start, or None."""
        return self._reports.get(uid)

    def publish(self, key: ObjectKey, uid: str, report: HealthReport) -> bool:
        """Show a report and ring the bell; False leaves everything as it was."""
        # The subscriber reads the board later, from the loop: nothing runs between these lines.
        if self._notify is None or not self._notify(key):
            return False
        self._reports[uid] = report
        return True

    def forget(self, uid: str) -> None:
        """Drop a report; unknown UIDs are ignored."""
        self._reports.pop(uid, None)
