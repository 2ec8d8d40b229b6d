"""Who is probed against one target, and how many of them fail against it.

Pure. The rule: a probe costs the same however many there are.
"""

from collections import Counter
from datetime import timedelta
from typing import NamedTuple

from proxy_operator.domain.proxy import Proxy


class Pace(NamedTuple):
    """How often a proxy is probed, and how long that may take."""

    interval: timedelta
    timeout: timedelta


class Standings:
    """The proxies of one target, by UID."""

    def __init__(self) -> None:
        self.failing: dict[str, Proxy] = {}
        """Healthy before their last probe, which failed in a way that may be the target's fault."""
        self.passes = 0
        """Probes in a row that got through proxies which had failed the time before."""
        self._healthy: set[str] = set()
        self._paces: dict[str, Pace] = {}
        self._counts: Counter[Pace] = Counter()
        self._pace: Pace | None = None

    def __len__(self) -> int:
        return len(self._paces)

    @property
    def healthy(self) -> int:
        """How many are healthy, those that fail included."""
        return len(self._healthy)

    @property
    def pace(self) -> Pace:
        """What most of them have; of several, the shortest. ValueError when there is none."""
        if self._pace is None:
            most = max(self._counts.values())
            self._pace = min(pace for pace, count in self._counts.items() if count == most)
        return self._pace

    def put(self, uid: str, pace: Pace) -> None:
        """Note how often a proxy is probed; a new one is not healthy."""
        self._unpace(uid)
        self._paces[uid] = pace
        self._counts[pace] += 1
        self._pace = None

    def remove(self, uid: str) -> None:
        """Forget a proxy."""
        self._unpace(uid)
        self.failing.pop(uid, None)
        self._healthy.discard(uid)
        self._pace = None

    def note_failure(self, uid: str, proxy: Proxy) -> None:
        """Note that a healthy proxy failed in a way that may be the target's fault."""
        self._healthy.add(uid)
        self.failing[uid] = proxy
        self.passes = 0

    def note(self, uid: str, *, is_healthy: bool) -> None:
        """Note how any other probe left a proxy."""
        self.failing.pop(uid, None)
        if is_healthy:
            self._healthy.add(uid)
        else:
            self._healthy.discard(uid)

    def forgive(self) -> None:
        """Take all failures back: they were the target's."""
        self.failing = {}
        self.passes = 0

    def _unpace(self, uid: str) -> None:
        pace = self._paces.pop(uid, None)
        if pace is not None:
            self._counts[pace] -= 1
            if not self._counts[pace]:
                del self._counts[pace]
