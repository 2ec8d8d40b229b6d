"""One recorder per Recorder port. Each registers its metrics when it is built, once per registry.

The rule: a recorder neither blocks nor raises, and forgets what the fleet no longer has.
"""

from datetime import timedelta

from prometheus_client import CollectorRegistry

from proxy_operator.adapters.metrics import catalog
from proxy_operator.adapters.metrics.collectors import QueueCollector
from proxy_operator.adapters.metrics.families import Registry, counter, gauge, histogram
from proxy_operator.adapters.metrics.healthchecks import Healthchecks
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import Outcome, QueueGauges

_LEASE_OUTCOMES = ("granted", "no_match", "invalid")


class ProbeRecorder:
    """Measures of probing (`health.ports.Recorder`)."""

    def __init__(self, registry: Registry) -> None:
        self._series = Healthchecks()
        registry.texts.append(self._series.text)
        self._lag = histogram(registry, catalog.PROBE_LAG)

    def probed(self, key: ObjectKey, outcome: ProbeOutcome, lag: timedelta) -> None:
        """Count a probe; `lag` is how late it started."""
        self._series.observe(
            key, outcome.latency.total_seconds(), is_failure=outcome.error is not None
        )
        self._lag.observe(max(0.0, lag.total_seconds()))

    def forgot(self, key: ObjectKey) -> None:
        """Drop what was kept for this proxy."""
        self._series.forget(key)


class LeaseRecorder:
    """Measures of leasing (`discovery.ports.Recorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = counter(registry, catalog.LEASE_REQUESTS)
        self._outcomes = {outcome: requests.labels(outcome) for outcome in _LEASE_OUTCOMES}

    def lease_requested(self, outcome: str) -> None:
        """Count a request: granted, no_match or invalid."""
        self._outcomes[outcome].inc()


class ProviderRecorder:
    """Measures of provider calls (`provisioning.ports.Recorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counter(registry, catalog.PROVIDER_REQUESTS)
        self._duration = histogram(registry, catalog.PROVIDER_REQUEST_DURATION)

    def provider_called(self, provider: str, op: str, result: str, seconds: float) -> None:
        """Count a call and how long it took."""
        self._requests.labels(provider, op, result).inc()
        self._duration.labels(provider, op).observe(seconds)


class QueueRecorder:
    """Measures of the work queues (`runtime.ports.QueueRecorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = QueueCollector(registry)
        self._adds = counter(registry, catalog.WORKQUEUE_ADDS)
        self._waits = histogram(registry, catalog.WORKQUEUE_QUEUE_DURATION)
        self._work = histogram(registry, catalog.WORKQUEUE_WORK_DURATION)
        self._retries = counter(registry, catalog.WORKQUEUE_RETRIES)

    def opened(self, queue: QueueGauges) -> None:
        """Read the gauges of this queue at every scrape, and show its counters from the start."""
        self._gauges.add(queue)
        for family in (self._adds, self._retries, self._waits, self._work):
            family.labels(queue.name)

    def added(self, queue: str) -> None:
        """Count a key that began to wait."""
        self._adds.labels(queue).inc()

    def taken(self, queue: str, waited: timedelta) -> None:
        """Note how long a key waited for its worker."""
        self._waits.labels(queue).observe(waited.total_seconds())

    def done(self, queue: str, worked: timedelta) -> None:
        """Note how long a worker had a key."""
        self._work.labels(queue).observe(worked.total_seconds())

    def retried(self, queue: str) -> None:
        """Count a delayed add."""
        self._retries.labels(queue).inc()


class ReconcileRecorder:
    """Measures of the controllers (`runtime.ports.ReconcileRecorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = counter(registry, catalog.RECONCILE_TOTAL)
        self._errors = counter(registry, catalog.RECONCILE_ERRORS)
        self._terminal = counter(registry, catalog.RECONCILE_TERMINAL_ERRORS)
        self._time = histogram(registry, catalog.RECONCILE_TIME)
        self._workers = gauge(registry, catalog.RECONCILE_WORKERS)
        self._active = gauge(registry, catalog.RECONCILE_ACTIVE)

    def sized(self, controller: str, workers: int) -> None:
        """Note how many workers there are, and show every series from the start."""
        self._workers.labels(controller).set(workers)
        self._active.labels(controller).set(0)
        self._errors.labels(controller)
        self._terminal.labels(controller)
        self._time.labels(controller)
        for result in (Outcome.SUCCESS, Outcome.REQUEUE_AFTER, Outcome.ERROR):
            self._total.labels(controller, result)

    def started(self, controller: str) -> None:
        """Count one more busy worker."""
        self._active.labels(controller).inc()

    def finished(self, controller: str, outcome: Outcome | None, took: timedelta) -> None:
        """Count a pass, and one busy worker less. No outcome: the pass was cancelled."""
        self._active.labels(controller).dec()
        if outcome is None:
            return
        self._time.labels(controller).observe(took.total_seconds())
        is_error = outcome in (Outcome.ERROR, Outcome.TERMINAL_ERROR)
        self._total.labels(controller, Outcome.ERROR if is_error else outcome).inc()
        if is_error:
            self._errors.labels(controller).inc()
        if outcome is Outcome.TERMINAL_ERROR:
            self._terminal.labels(controller).inc()


class LeaderRecorder:
    """Measures of leader election."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._status = gauge(registry, catalog.LEADER)

    def leads(self, name: str, *, is_leading: bool) -> None:
        """Note whether this process leads; `name` is that of the lock."""
        self._status.labels(name).set(float(is_leading))
