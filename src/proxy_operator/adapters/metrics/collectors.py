"""Metrics read at the moment of a scrape, so that they cannot drift from what they describe.

The rule: a reading is cheap, does not await and does not raise.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proxy_operator.adapters.metrics import catalog
from proxy_operator.domain.proxy import Phase, Proxy
from proxy_operator.runtime.ports import QueueGauges


class FleetCollector(Collector):
    """Proxies by phase, and active leases."""

    def __init__(
        self,
        registry: CollectorRegistry,
        proxies: Callable[[], Iterable[Proxy]],
        leases: Callable[[], int],
    ) -> None:
        """`proxies` lists the fleet, `leases` counts the active ones."""
        self._proxies = proxies
        self._leases = leases
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Tell the registry the names without reading anything."""
        return [_gauge(catalog.PROXIES), _gauge(catalog.LEASES_ACTIVE)]

    def collect(self) -> Iterator[Metric]:
        """Read both."""
        phases = Counter(proxy.status.phase or Phase.PENDING for proxy in self._proxies())
        family = _gauge(catalog.PROXIES)
        for phase in Phase:
            family.add_metric([phase], phases[phase])
        yield family
        leases = _gauge(catalog.LEASES_ACTIVE)
        leases.add_metric([], self._leases())
        yield leases


class GuardCollector(Collector):
    """Whose verdicts are held, by probe target."""

    def __init__(
        self, registry: CollectorRegistry, holding: Callable[[], Mapping[str, bool]]
    ) -> None:
        """Take who tells it, by label of each target in use."""
        self._holding = holding
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Tell the registry the name without reading anything."""
        return [_gauge(catalog.HEALTH_GUARD)]

    def collect(self) -> Iterator[Metric]:
        """Read all guards."""
        family = _gauge(catalog.HEALTH_GUARD)
        for target, is_holding in self._holding().items():
            family.add_metric([target], is_holding)
        yield family


class QueueCollector(Collector):
    """Gauges of every queue that was opened."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._queues: dict[str, QueueGauges] = {}
        registry.register(self)

    def add(self, queue: QueueGauges) -> None:
        """Read this queue at every scrape; it takes the place of an older one of its name."""
        self._queues[queue.name] = queue

    def describe(self) -> Iterable[Metric]:
        """Tell the registry the names without reading anything."""
        return [family for family, _ in self._families()]

    def collect(self) -> Iterator[Metric]:
        """Read all queues."""
        for family, read in self._families():
            for name, queue in self._queues.items():
                family.add_metric([name], read(queue))
            yield family

    def _families(
        self,
    ) -> Iterator[tuple[GaugeMetricFamily, Callable[[QueueGauges], float]]]:
        yield _gauge(catalog.WORKQUEUE_DEPTH), lambda queue: queue.depth()
        yield (
            _gauge(catalog.WORKQUEUE_UNFINISHED),
            lambda queue: queue.unfinished_work().total_seconds(),
        )
        yield (
            _gauge(catalog.WORKQUEUE_LONGEST_RUNNING),
            lambda queue: queue.longest_running().total_seconds(),
        )


def _gauge(metric: catalog.Metric) -> GaugeMetricFamily:
    return GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
