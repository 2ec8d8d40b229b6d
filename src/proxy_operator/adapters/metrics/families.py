"""Turns rows of the catalogue into what prometheus_client registers and renders.

The rule: the registry comes from outside, and everything is registered exactly once by whoever
builds the object graph.
"""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from proxy_operator.adapters.metrics.catalog import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""https://prometheus.io/docs/instrumenting/exposition_formats/, understood by every scraper."""


TextSource = Callable[[], Iterable[str]]
"""Gives complete families in the text format."""


class Registry(CollectorRegistry):
    """A registry that also carries what is rendered elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[TextSource] = []


def new_registry() -> Registry:
    """Return a registry that knows the process, the interpreter and its garbage collector."""
    # One `…_created` series beside every counter would double what a scrape carries.
    disable_created_metrics()  # type: ignore[no-untyped-call] # the library leaves it untyped
    registry = Registry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


def render(registry: Registry) -> tuple[bytes, str]:
    """Return the body of a scrape and its content type. Reads live state: call it on the loop."""
    texts = "".join(part for text in registry.texts for part in text())
    return generate_latest(registry) + texts.encode(), CONTENT_TYPE


def counter(registry: CollectorRegistry, metric: Metric) -> Counter:
    """Register a counter."""
    return Counter(metric.name, metric.help, metric.labels, registry=registry)


def gauge(registry: CollectorRegistry, metric: Metric) -> Gauge:
    """Register a gauge."""
    return Gauge(metric.name, metric.help, metric.labels, registry=registry)


def histogram(registry: CollectorRegistry, metric: Metric) -> Histogram:
    """Register a histogram."""
    return Histogram(
        metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=registry
    )
