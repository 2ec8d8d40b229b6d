"""Every metric: name, kind, labels, help. Nothing is exported that is not written here.

Names without our prefix are those that users of controller-runtime and client-go already have on
their dashboards (`sigs.k8s.io/controller-runtime/pkg/internal/controller/metrics`,
`pkg/metrics/workqueue.go`, `pkg/metrics/leaderelection.go`); so are their labels and buckets.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """The types of the Prometheus text format."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(NamedTuple):
    """One metric family."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds of a histogram, without the infinite one."""


_QUEUE_BUCKETS: Final = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0)
_RECONCILE_BUCKETS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)

PROXIES = Metric(
    "proxy_operator_proxies", Kind.GAUGE, "Proxies by phase; every phase is present.", ("phase",)
)
LEASES_ACTIVE = Metric("proxy_operator_leases_active", Kind.GAUGE, "Leases that have not ended.")
LEASE_REQUESTS = Metric(
    "proxy_operator_lease_requests_total",
    Kind.COUNTER,
    "Lease requests by outcome: granted, no_match, invalid.",
    ("outcome",),
)
HEALTHCHECK_DURATION = Metric(
    "proxy_operator_healthcheck_duration_seconds",
    Kind.HISTOGRAM,
    "Time of a probe up to the first byte, or up to its failure, by namespace/name.",
    ("proxy",),
    # Few on purpose: every one is a series per proxy.
    (0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)
HEALTHCHECK_FAILURES = Metric(
    "proxy_operator_healthcheck_failures_total",
    Kind.COUNTER,
    "Probes that failed, by namespace/name.",
    ("proxy",),
)
PROBE_LAG = Metric(
    "proxy_operator_probe_lag_seconds",
    Kind.HISTOGRAM,
    "How late probes start. Growing means too few --probe-workers.",
    (),
    (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0),
)
HEALTH_GUARD = Metric(
    "proxy_operator_health_guard_active",
    Kind.GAUGE,
    "1 while verdicts are held because the probe target itself fails; targets of at least three"
    " proxies, by scheme, host and port.",
    ("target",),
)
PROVIDER_REQUESTS = Metric(
    "proxy_operator_provider_requests_total",
    Kind.COUNTER,
    "Provider calls by result: success, not_found, quota, own_limit, permanent, transient.",
    ("provider", "op", "result"),
)
PROVIDER_REQUEST_DURATION = Metric(
    "proxy_operator_provider_request_duration_seconds",
    Kind.HISTOGRAM,
    "Time of a provider call.",
    ("provider", "op"),
    (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
OWN_LIMIT_REFUSALS = Metric(
    "proxy_operator_own_limit_refusals_total",
    Kind.COUNTER,
    "Tries to make or replace an instance that the operator's own limit refused, by limit:"
    " max_instances, max_creates_per_minute.",
    ("provider", "limit"),
)
SWEEPS = Metric(
    "proxy_operator_sweeps_total",
    Kind.COUNTER,
    "Looks for orphans at a provider, by result: success, incomplete (not all places could be"
    " listed), failed.",
    ("provider", "result"),
)
SWEEP_LAST_SUCCESS = Metric(
    "proxy_operator_sweep_last_success_timestamp_seconds",
    Kind.GAUGE,
    "When this process last looked for orphans with success; none before the first time.",
    ("provider",),
)
ORPHANS_DELETED = Metric(
    "proxy_operator_orphans_deleted_total",
    Kind.COUNTER,
    "Orphans that a sweep had the provider delete; never those of a dry run.",
    ("provider",),
)
ORPHANS_LEFT = Metric(
    "proxy_operator_orphans_left",
    Kind.GAUGE,
    "Orphans that the last sweep saw and left: a dry run, or the deletion was refused.",
    ("provider",),
)
WORKQUEUE_DEPTH = Metric("workqueue_depth", Kind.GAUGE, "Keys that wait for a worker.", ("name",))
WORKQUEUE_ADDS = Metric("workqueue_adds_total", Kind.COUNTER, "Keys that began to wait.", ("name",))
WORKQUEUE_QUEUE_DURATION = Metric(
    "workqueue_queue_duration_seconds",
    Kind.HISTOGRAM,
    "How long a key waited for its worker.",
    ("name",),
    _QUEUE_BUCKETS,
)
WORKQUEUE_WORK_DURATION = Metric(
    "workqueue_work_duration_seconds",
    Kind.HISTOGRAM,
    "How long a worker had a key.",
    ("name",),
    _QUEUE_BUCKETS,
)
WORKQUEUE_UNFINISHED = Metric(
    "workqueue_unfinished_work_seconds",
    Kind.GAUGE,
    "Summed age of the passes now running. Growing without end means that workers hang.",
    ("name",),
)
WORKQUEUE_LONGEST_RUNNING = Metric(
    "workqueue_longest_running_processor_seconds",
    Kind.GAUGE,
    "Age of the oldest pass now running.",
    ("name",),
)
WORKQUEUE_RETRIES = Metric(
    "workqueue_retries_total", Kind.COUNTER, "Keys added with a delay.", ("name",)
)
RECONCILE_TOTAL = Metric(
    "controller_runtime_reconcile_total",
    Kind.COUNTER,
    "Passes by result: success, requeue_after, error.",
    ("controller", "result"),
)
RECONCILE_ERRORS = Metric(
    "controller_runtime_reconcile_errors_total",
    Kind.COUNTER,
    "Passes that failed.",
    ("controller",),
)
RECONCILE_TERMINAL_ERRORS = Metric(
    "controller_runtime_terminal_reconcile_errors_total",
    Kind.COUNTER,
    "Passes that failed and are not retried.",
    ("controller",),
)
RECONCILE_TIME = Metric(
    "controller_runtime_reconcile_time_seconds",
    Kind.HISTOGRAM,
    "Time of a pass.",
    ("controller",),
    _RECONCILE_BUCKETS,
)
RECONCILE_WORKERS = Metric(
    "controller_runtime_max_concurrent_reconciles", Kind.GAUGE, "Workers.", ("controller",)
)
RECONCILE_ACTIVE = Metric(
    "controller_runtime_active_workers", Kind.GAUGE, "Workers now busy.", ("controller",)
)
LEADER = Metric(
    "leader_election_master_status",
    Kind.GAUGE,
    "1 while this process leads, 0 while it does not.",
    ("name",),
)

CATALOG: Final = (
    PROXIES,
    LEASES_ACTIVE,
    LEASE_REQUESTS,
    HEALTHCHECK_DURATION,
    HEALTHCHECK_FAILURES,
    PROBE_LAG,
    HEALTH_GUARD,
    PROVIDER_REQUESTS,
    PROVIDER_REQUEST_DURATION,
    OWN_LIMIT_REFUSALS,
    SWEEPS,
    SWEEP_LAST_SUCCESS,
    ORPHANS_DELETED,
    ORPHANS_LEFT,
    WORKQUEUE_DEPTH,
    WORKQUEUE_ADDS,
    WORKQUEUE_QUEUE_DURATION,
    WORKQUEUE_WORK_DURATION,
    WORKQUEUE_UNFINISHED,
    WORKQUEUE_LONGEST_RUNNING,
    WORKQUEUE_RETRIES,
    RECONCILE_TOTAL,
    RECONCILE_ERRORS,
    RECONCILE_TERMINAL_ERRORS,
    RECONCILE_TIME,
    RECONCILE_WORKERS,
    RECONCILE_ACTIVE,
    LEADER,
)


def metrics_table() -> str:
    """Return the catalogue as a Markdown table, ending in a newline."""
    lines = ["| Metric | Type | Labels | Meaning |", "|---|---|---|---|"]
    for metric in CATALOG:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "\n".join(lines) + "\n"
