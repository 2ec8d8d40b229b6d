"""The only metrics that grow with the fleet: probe durations and failures, one series per proxy.

They are kept and rendered here, not by the library: its histogram takes ten times the memory, and
its renderer would hold the loop, and every lease answer, for a fifth of a second at 5,000 proxies.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from proxy_operator.adapters.metrics.catalog import HEALTHCHECK_DURATION, HEALTHCHECK_FAILURES
from proxy_operator.runtime.objects import ObjectKey

_BOUNDS: Final = HEALTHCHECK_DURATION.buckets
_NAME: Final = HEALTHCHECK_DURATION.name
# The label is a namespace and a name of RFC 1123: nothing in it needs escaping.
_DURATION: Final = (
    "".join(
        f'{_NAME}_bucket{{le="{bound}",proxy="%(proxy)s"}} %({n})d\n'
        for n, bound in enumerate([*_BOUNDS, "+Inf"])
    )
    + f'{_NAME}_count{{proxy="%(proxy)s"}} %({len(_BOUNDS)})d\n'
    + f'{_NAME}_sum{{proxy="%(proxy)s"}} %(seconds)r\n'
)
_KEYS: Final = tuple(str(n) for n in range(len(_BOUNDS) + 1))


class _Series:
    __slots__ = ("counts", "failures", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS) + 1)
        self.seconds = 0.0
        self.failures = 0


class Healthchecks:
    """Duration and failures of probes by proxy."""

    def __init__(self) -> None:
        self._series: dict[ObjectKey, _Series] = {}

    def observe(self, key: ObjectKey, seconds: float, *, is_failure: bool) -> None:
        """Count one probe."""
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series()
        series.counts[bisect_left(_BOUNDS, seconds)] += 1
        series.seconds += seconds
        series.failures += is_failure

    def forget(self, key: ObjectKey) -> None:
        """Drop the series of a proxy."""
        self._series.pop(key, None)

    def text(self) -> Iterator[str]:
        """Yield both families in the text format."""
        for metric in (HEALTHCHECK_DURATION, HEALTHCHECK_FAILURES):
            yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.kind}\n"
            if metric is HEALTHCHECK_FAILURES:
                for key, series in self._series.items():
                    yield f'{metric.name}{{proxy="{key}"}} {series.failures}\n'
                continue
            for key, series in self._series.items():
                values: dict[str, object] = dict(zip(_KEYS, accumulate(series.counts), strict=True))
                yield _DURATION % {**values, "proxy": f"{key}", "seconds": series.seconds}
