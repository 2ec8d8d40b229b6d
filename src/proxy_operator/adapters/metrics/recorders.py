"""One recorder per Recorder port. Each registers its metrics when it is built, once per registry.

The rule: a recorder neither blocks nor raises, and forgets what the fleet no longer has. Finding a
labelled child costs the library more than counting, so those of few labels are kept.
"""

from datetime import datetime, timedelta
from functools import cache

from prometheus_client import CollectorRegistry

from proxy_operator.adapters.metrics import catalog
from proxy_operator.adapters.metrics.collectors import QueueCollector
from proxy_operator.adapters.metrics.families import Registry, counter, gauge, histogram
from proxy_operator.adapters.metrics.healthchecks import Healthchecks
from proxy_operator.controllers.ports import SweepResult
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.provisioning.errors import OwnLimit
from proxy_operator.provisioning.instrumented import OPERATIONS, CallResult
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
        self._requests = cache(counter(registry, catalog.PROVIDER_REQUESTS).labels)
        self._duration = cache(histogram(registry, catalog.PROVIDER_REQUEST_DURATION).labels)
        self._limits = counter(registry, catalog.OWN_LIMIT_REFUSALS)

    def provider_served(self, provider: str) -> None:
        """Show every count of a provider from the start."""
        for op in OPERATIONS:
            for result in CallResult:
                self._requests(provider, op, result)
        for limit in OwnLimit:
            self._limits.labels(provider, limit)

    def provider_called(self, provider: str, op: str, result: str, seconds: float) -> None:
        """Count a call and how long it took."""
        self._requests(provider, op, result).inc()
        self._duration(provider, op).observe(seconds)

    def limit_reached(self, provider: str, limit: str) -> None:
        """Count a refusal by the operator's own limit."""
        self._limits.labels(provider, limit).inc()


class SweepRecorder:
    """Measures of the sweep for orphans (`controllers.ports.SweepRecorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._sweeps = counter(registry, catalog.SWEEPS)
        self._last_success = gauge(registry, catalog.SWEEP_LAST_SUCCESS)
        self._deleted = counter(registry, catalog.ORPHANS_DELETED)
        self._left = gauge(registry, catalog.ORPHANS_LEFT)

    def swept_from_now(self, provider: str) -> None:
        """Show every count of a provider from the start; what no sweep has seen stays unknown."""
        for result in SweepResult:
            self._sweeps.labels(provider, result)
        self._deleted.labels(provider)

    def swept(self, provider: str, result: SweepResult, at: datetime) -> None:
        """Count a look at a provider, and note when the last one succeeded."""
        self._sweeps.labels(provider, result).inc()
        if result is SweepResult.SUCCESS:
            self._last_success.labels(provider).set(at.timestamp())

    def orphan_deleted(self, provider: str) -> None:
        """Count an orphan that was told to go."""
        self._deleted.labels(provider).inc()

    def orphans_left(self, provider: str, count: int) -> None:
        """Note how many orphans the last sweep saw and left."""
        self._left.labels(provider).set(count)


class QueueRecorder:
    """Measures of the work queues (`runtime.ports.QueueRecorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._gauges = QueueCollector(registry)
        self._adds = cache(counter(registry, catalog.WORKQUEUE_ADDS).labels)
        self._waits = cache(histogram(registry, catalog.WORKQUEUE_QUEUE_DURATION).labels)
        self._work = cache(histogram(registry, catalog.WORKQUEUE_WORK_DURATION).labels)
        self._retries = cache(counter(registry, catalog.WORKQUEUE_RETRIES).labels)

    def opened(self, queue: QueueGauges) -> None:
        """Read the gauges of this queue at every scrape, and show its counters from the start."""
        self._gauges.add(queue)
        for child in (self._adds, self._retries, self._waits, self._work):
            child(queue.name)

    def added(self, queue: str) -> None:
        """Count a key that began to wait."""
        self._adds(queue).inc()

    def taken(self, queue: str, waited: timedelta) -> None:
        """Note how long a key waited for its worker."""
        self._waits(queue).observe(waited.total_seconds())

    def done(self, queue: str, worked: timedelta) -> None:
        """Note how long a worker had a key."""
        self._work(queue).observe(worked.total_seconds())

    def retried(self, queue: str) -> None:
        """Count a delayed add."""
        self._retries(queue).inc()


class ReconcileRecorder:
    """Measures of the controllers (`runtime.ports.ReconcileRecorder`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = cache(counter(registry, catalog.RECONCILE_TOTAL).labels)
        self._errors = cache(counter(registry, catalog.RECONCILE_ERRORS).labels)
        self._terminal = cache(counter(registry, catalog.RECONCILE_TERMINAL_ERRORS).labels)
        self._time = cache(histogram(registry, catalog.RECONCILE_TIME).labels)
        self._workers = cache(gauge(registry, catalog.RECONCILE_WORKERS).labels)
        self._active = cache(gauge(registry, catalog.RECONCILE_ACTIVE).labels)

    def sized(self, controller: str, workers: int) -> None:
        """Note how many workers there are, and show every series from the start."""
        self._workers(controller).set(workers)
        self._active(controller).set(0)
        self._errors(controller)
        self._terminal(controller)
        self._time(controller)
        for result in (Outcome.SUCCESS, Outcome.REQUEUE_AFTER, Outcome.ERROR):
            self._total(controller, result)

    def started(self, controller: str) -> None:
        """Count one more busy worker."""
        self._active(controller).inc()

    def finished(self, controller: str, outcome: Outcome | None, took: timedelta) -> None:
        """Count a pass, and one busy worker less. No outcome: the pass was cancelled."""
        self._active(controller).dec()
        if outcome is None:
            return
        self._time(controller).observe(took.total_seconds())
        is_error = outcome in (Outcome.ERROR, Outcome.TERMINAL_ERROR)
        self._total(controller, Outcome.ERROR if is_error else outcome).inc()
        if is_error:
            self._errors(controller).inc()
        if outcome is Outcome.TERMINAL_ERROR:
            self._terminal(controller).inc()


class LeaderRecorder:
    """Measures of leader election."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._status = gauge(registry, catalog.LEADER)

    def leads(self, name: str, *, is_leading: bool) -> None:
        """Note whether this process leads; `name` is that of the lock."""
        self._status.labels(name).set(float(is_leading))
