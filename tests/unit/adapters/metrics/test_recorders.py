"""What each recorder leaves in a scrape."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proxy_operator.adapters.metrics.catalog import CATALOG
from proxy_operator.adapters.metrics.collectors import FleetCollector, GuardCollector
from proxy_operator.adapters.metrics.families import Registry, new_registry, render
from proxy_operator.adapters.metrics.recorders import (
    LeaderRecorder,
    LeaseRecorder,
    ProbeRecorder,
    ProviderRecorder,
    QueueRecorder,
    ReconcileRecorder,
    SweepRecorder,
)
from proxy_operator.controllers.ports import SweepResult
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Phase, ProxyStatus
from proxy_operator.health.ports import ProbeOutcome
from proxy_operator.provisioning.errors import OwnLimit
from proxy_operator.provisioning.instrumented import CallResult
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.ports import Outcome
from tests.builders import EPOCH, a_proxy

if TYPE_CHECKING:
    from proxy_operator.controllers import ports as controllers
    from proxy_operator.discovery import ports as discovery
    from proxy_operator.health import ports as health
    from proxy_operator.provisioning import ports as provisioning
    from proxy_operator.runtime import ports as runtime

KEY = ObjectKey("default", "p1")
SECOND = timedelta(seconds=1)


@pytest.fixture
def registry() -> Registry:
    return new_registry()


def value(registry: Registry, metric: str, /, **labels: str) -> float | None:
    """What a scraper reads."""
    found = [
        sample.value
        for family in text_string_to_metric_families(render(registry)[0].decode())
        for sample in family.samples
        if (sample.name, sample.labels) == (metric, labels)
    ]
    assert len(found) <= 1
    return found[0] if found else None


def lines(registry: Registry) -> list[str]:
    return render(registry)[0].decode().splitlines()


class FakeQueue:
    name = "proxy"

    def depth(self) -> int:
        return 3

    def unfinished_work(self) -> timedelta:
        return 2 * SECOND

    def longest_running(self) -> timedelta:
        return SECOND


def the_recorders_fit_their_ports(registry: Registry) -> None:
    """For the type checker; never called."""
    _probe: health.Recorder = ProbeRecorder(registry)
    _lease: discovery.Recorder = LeaseRecorder(registry)
    _provider: provisioning.Recorder = ProviderRecorder(registry)
    _sweep: controllers.SweepRecorder = SweepRecorder(registry)
    _queue: runtime.QueueRecorder = QueueRecorder(registry)
    _reconcile: runtime.ReconcileRecorder = ReconcileRecorder(registry)


def test_every_row_of_the_catalogue_is_exported_under_its_name_and_kind(registry):
    ProbeRecorder(registry)
    LeaseRecorder(registry)
    ProviderRecorder(registry)
    QueueRecorder(registry)
    ReconcileRecorder(registry)
    LeaderRecorder(registry)
    SweepRecorder(registry)
    FleetCollector(registry, list, lambda: 0)
    GuardCollector(registry, dict)
    typed = {tuple(line.split()[2:4]) for line in lines(registry) if line.startswith("# TYPE")}
    assert {(m.name, m.kind.value) for m in CATALOG} <= typed
    ours = {name for name, _ in typed if not name.startswith(("process_", "python_"))}
    assert ours == {m.name for m in CATALOG}


def test_a_scrape_is_the_text_format_with_process_and_interpreter(registry):
    body, content_type = render(registry)
    assert content_type.startswith("text/plain; version=0.0.4")
    for name in (b"process_resident_memory_bytes", b"python_info", b"python_gc_collections_total"):
        assert name in body
    assert b"_created" not in body


def test_two_registries_share_nothing(registry):
    other = new_registry()
    LeaseRecorder(other).lease_requested("granted")
    LeaseRecorder(registry)
    assert value(registry, "proxy_operator_lease_requests_total", outcome="granted") == 0
    assert value(other, "proxy_operator_lease_requests_total", outcome="granted") == 1


def test_every_phase_is_present_and_read_at_the_scrape(registry):
    fleet = [a_proxy("new"), a_proxy("p1", status=ProxyStatus(phase=Phase.READY))]
    leases = [0]
    FleetCollector(registry, lambda: fleet, lambda: leases[0])
    phases = {p: value(registry, "proxy_operator_proxies", phase=p) for p in Phase}
    assert phases == {**dict.fromkeys(Phase, 0), Phase.READY: 1, Phase.PENDING: 1}
    fleet.clear()
    leases[0] = 7
    assert value(registry, "proxy_operator_proxies", phase="Ready") == 0
    assert value(registry, "proxy_operator_leases_active") == 7


def test_guards_are_read_at_the_scrape_and_forgotten_with_their_target(registry):
    held = {"http://a.example": True, "http://b.example": False}
    GuardCollector(registry, lambda: held)
    name = "proxy_operator_health_guard_active"
    assert value(registry, name, target="http://a.example") == 1
    assert value(registry, name, target="http://b.example") == 0
    held.clear()
    assert not [line for line in lines(registry) if "example" in line]


def test_every_probe_is_counted_and_a_forgotten_proxy_leaves_no_series(registry):
    recorder = ProbeRecorder(registry)
    recorder.probed(KEY, ProbeOutcome(error=None, latency=timedelta(milliseconds=250)), SECOND)
    recorder.probed(KEY, ProbeOutcome(error=ProbeError.TIMEOUT, latency=9 * SECOND), 2 * SECOND)
    name = "proxy_operator_healthcheck_duration_seconds"
    assert value(registry, f"{name}_bucket", proxy="default/p1", le="0.1") == 0
    assert value(registry, f"{name}_bucket", proxy="default/p1", le="0.25") == 1
    assert value(registry, f"{name}_bucket", proxy="default/p1", le="5.0") == 1
    assert value(registry, f"{name}_bucket", proxy="default/p1", le="+Inf") == 2
    assert value(registry, f"{name}_count", proxy="default/p1") == 2
    assert value(registry, f"{name}_sum", proxy="default/p1") == 9.25
    failures = "proxy_operator_healthcheck_failures_total"
    assert value(registry, failures, proxy="default/p1") == 1
    assert value(registry, "proxy_operator_probe_lag_seconds_sum") == 3
    recorder.forgot(KEY)
    recorder.forgot(KEY)
    assert not [line for line in lines(registry) if "default/p1" in line]


def test_provider_calls_are_counted_by_result(registry):
    recorder = ProviderRecorder(registry)
    recorder.provider_called("local", "create", "success", 0.2)
    recorder.provider_called("local", "create", "quota", 0.3)
    found = value(
        registry,
        "proxy_operator_provider_requests_total",
        provider="local",
        op="create",
        result="quota",
    )
    assert found == 1
    duration = "proxy_operator_provider_request_duration_seconds"
    assert value(registry, f"{duration}_sum", provider="local", op="create") == 0.5


def test_the_counts_of_a_provider_are_there_before_its_first_call(registry):
    recorder = ProviderRecorder(registry)
    recorder.provider_served("gcp")
    calls = "proxy_operator_provider_requests_total"
    for op in ("check", "create", "get", "delete", "list_by_tag"):
        for result in CallResult:
            assert value(registry, calls, provider="gcp", op=op, result=result) == 0
    refusals = "proxy_operator_own_limit_refusals_total"
    for limit in OwnLimit:
        assert value(registry, refusals, provider="gcp", limit=limit) == 0
    # A second one, made later, takes nothing back.
    recorder.limit_reached("gcp", OwnLimit.MAX_INSTANCES)
    recorder.provider_served("gcp")
    assert value(registry, refusals, provider="gcp", limit="max_instances") == 1
    assert value(registry, refusals, provider="gcp", limit="max_creates_per_minute") == 0


def test_only_a_sweep_that_saw_everything_is_a_success(registry):
    recorder = SweepRecorder(registry)
    recorder.swept_from_now("gcp")
    sweeps = "proxy_operator_sweeps_total"
    last = "proxy_operator_sweep_last_success_timestamp_seconds"
    for result in SweepResult:
        assert value(registry, sweeps, provider="gcp", result=result) == 0
    # Not 0: nobody was there in 1970.
    assert value(registry, last, provider="gcp") is None
    recorder.swept("gcp", SweepResult.SUCCESS, EPOCH)
    recorder.swept("gcp", SweepResult.FAILED, EPOCH + SECOND)
    recorder.swept("gcp", SweepResult.INCOMPLETE, EPOCH + 2 * SECOND)
    for result in SweepResult:
        assert value(registry, sweeps, provider="gcp", result=result) == 1
    assert value(registry, last, provider="gcp") == EPOCH.timestamp()


def test_orphans_are_counted_as_they_go_and_shown_while_they_stay(registry):
    recorder = SweepRecorder(registry)
    recorder.swept_from_now("gcp")
    deleted, left = "proxy_operator_orphans_deleted_total", "proxy_operator_orphans_left"
    assert value(registry, deleted, provider="gcp") == 0
    assert value(registry, left, provider="gcp") is None
    recorder.orphan_deleted("gcp")
    recorder.orphans_left("gcp", 3)
    assert value(registry, deleted, provider="gcp") == 1
    assert value(registry, left, provider="gcp") == 3
    recorder.orphans_left("gcp", 0)
    assert value(registry, left, provider="gcp") == 0


def test_queues_are_read_at_the_scrape_and_counted_between(registry):
    recorder = QueueRecorder(registry)
    recorder.opened(FakeQueue())
    assert value(registry, "workqueue_depth", name="proxy") == 3
    assert value(registry, "workqueue_unfinished_work_seconds", name="proxy") == 2
    assert value(registry, "workqueue_longest_running_processor_seconds", name="proxy") == 1
    assert value(registry, "workqueue_retries_total", name="proxy") == 0
    recorder.added("proxy")
    recorder.taken("proxy", SECOND)
    recorder.done("proxy", 2 * SECOND)
    recorder.retried("proxy")
    assert value(registry, "workqueue_adds_total", name="proxy") == 1
    assert value(registry, "workqueue_queue_duration_seconds_sum", name="proxy") == 1
    assert value(registry, "workqueue_work_duration_seconds_sum", name="proxy") == 2
    assert value(registry, "workqueue_retries_total", name="proxy") == 1


@pytest.mark.parametrize(
    ("outcome", "result", "errors", "terminal"),
    [
        (Outcome.SUCCESS, "success", 0, 0),
        (Outcome.REQUEUE_AFTER, "requeue_after", 0, 0),
        (Outcome.ERROR, "error", 1, 0),
        (Outcome.TERMINAL_ERROR, "error", 1, 1),
    ],
)
def test_a_pass_is_counted_once_by_its_result(registry, outcome, result, errors, terminal):
    recorder = ReconcileRecorder(registry)
    recorder.sized("proxy", 3)
    recorder.started("proxy")
    assert value(registry, "controller_runtime_active_workers", controller="proxy") == 1
    recorder.finished("proxy", outcome, SECOND)
    counted = {
        r: value(registry, "controller_runtime_reconcile_total", controller="proxy", result=r)
        for r in ("success", "requeue_after", "error")
    }
    assert counted == {**dict.fromkeys(counted, 0), result: 1}
    base = "controller_runtime"
    assert value(registry, f"{base}_reconcile_errors_total", controller="proxy") == errors
    assert (
        value(registry, f"{base}_terminal_reconcile_errors_total", controller="proxy") == terminal
    )
    assert value(registry, f"{base}_reconcile_time_seconds_sum", controller="proxy") == 1
    assert value(registry, f"{base}_active_workers", controller="proxy") == 0
    assert value(registry, f"{base}_max_concurrent_reconciles", controller="proxy") == 3


def test_a_cancelled_pass_only_frees_its_worker(registry):
    recorder = ReconcileRecorder(registry)
    recorder.sized("proxy", 1)
    recorder.started("proxy")
    recorder.finished("proxy", None, SECOND)
    assert value(registry, "controller_runtime_active_workers", controller="proxy") == 0
    assert (
        value(registry, "controller_runtime_reconcile_time_seconds_count", controller="proxy") == 0
    )


def test_leadership_is_a_gauge(registry):
    recorder = LeaderRecorder(registry)
    recorder.leads("proxy-operator", is_leading=True)
    assert value(registry, "leader_election_master_status", name="proxy-operator") == 1
    recorder.leads("proxy-operator", is_leading=False)
    assert value(registry, "leader_election_master_status", name="proxy-operator") == 0
