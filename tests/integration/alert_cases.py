"""When each rule of deploy/monitoring/alerts.yaml fires and when it does not.

Series are in promtool's notation, one value a minute: `1+0x5` is six times 1, `0+2x9` counts up by
2, `_x9` is no value for nine minutes. Series without a job get the job that the rules select.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Case(NamedTuple):
    """Series in which an alert is quiet at one minute and fires at a later one."""

    alert: str
    series: Mapping[str, str]
    quiet_at: int
    fires_at: int
    labels: Mapping[str, str]
    """Beside job and severity."""
    summary: str


CALLS: Final = "proxy_operator_provider_requests_total"
LIMITS: Final = "proxy_operator_own_limit_refusals_total"
SWEEPS: Final = "proxy_operator_sweeps_total"
PROXIES: Final = "proxy_operator_proxies"

FIRING: Final = (
    Case(
        "ProxyOperatorHasNoLeader",
        {
            'leader_election_master_status{name="a",instance="1"}': "1+0x9 0+0x20",
            'leader_election_master_status{name="a",instance="2"}': "0+0x30",
        },
        quiet_at=10,
        fires_at=11,
        labels={},
        summary="Operators run, and none of them leads.",
    ),
    Case(
        "ProxyOperatorWorkerHangs",
        {'workqueue_longest_running_processor_seconds{name="proxy"}': "0+60x20"},
        quiet_at=6,
        fires_at=8,
        labels={"name": "proxy"},
        summary="A pass has been running for 8m 0s.",
    ),
    Case(
        "ProxyOperatorFallsBehind",
        {
            'workqueue_queue_duration_seconds_bucket{name="proxy",le="10.0"}': "0+0x60",
            'workqueue_queue_duration_seconds_bucket{name="proxy",le="100.0"}': "0+6x60",
            'workqueue_queue_duration_seconds_bucket{name="proxy",le="+Inf"}': "0+6x60",
        },
        quiet_at=14,
        fires_at=17,
        labels={"name": "proxy"},
        summary="Changes wait 1m 31s for a worker.",
    ),
    Case(
        "ProxyOperatorReconcileErrors",
        {
            'controller_runtime_reconcile_errors_total{controller="proxy"}': "0+3x60",
            'controller_runtime_reconcile_total{controller="proxy",result="error"}': "0+3x60",
            'controller_runtime_reconcile_total{controller="proxy",result="success"}': "0+7x60",
        },
        quiet_at=14,
        fires_at=17,
        labels={"controller": "proxy"},
        summary="30% of all passes fail.",
    ),
    # One refusal, and no second one.
    Case(
        "ProviderRefuses",
        {f'{CALLS}{{provider="gcp",op="create",result="permanent"}}': "0+0x9 1+0x60"},
        quiet_at=9,
        fires_at=11,
        labels={"provider": "gcp", "op": "create"},
        summary="Provider gcp refuses create.",
    ),
    # A process that begins to count anew where an old one had counted.
    Case(
        "ProviderRefuses",
        {f'{CALLS}{{provider="gcp",op="create",result="permanent"}}': "7+0x39 0 1+0x60"},
        quiet_at=39,
        fires_at=42,
        labels={"provider": "gcp", "op": "create"},
        summary="Provider gcp refuses create.",
    ),
    Case(
        "ProviderQuotaReached",
        {f'{CALLS}{{provider="gcp",op="create",result="quota"}}': "0+0x9 1+0x4 2+0x4 3+0x60"},
        quiet_at=19,
        fires_at=21,
        labels={"provider": "gcp", "op": "create"},
        summary="Provider gcp has no more to give.",
    ),
    # Tried again every five minutes.
    Case(
        "OwnLimitReached",
        {
            f'{LIMITS}{{provider="gcp",limit="max_instances"}}': "0+0x9 1+0.2x60",
            f'{LIMITS}{{provider="gcp",limit="max_creates_per_minute"}}': "0+0x60",
        },
        quiet_at=39,
        fires_at=41,
        labels={"provider": "gcp", "limit": "max_instances"},
        summary="Proxies at gcp wait for the operator's own limit max_instances.",
    ),
    Case(
        "ProviderCallsFail",
        {
            f'{CALLS}{{provider="gcp",op="get",result="transient"}}': "0+3x60",
            f'{CALLS}{{provider="gcp",op="get",result="success"}}': "0+1x60",
        },
        quiet_at=14,
        fires_at=17,
        labels={"provider": "gcp"},
        summary="75% of the calls of gcp fail.",
    ),
    Case(
        "OrphansAreNotLookedFor",
        {
            f'{SWEEPS}{{provider="gcp",result="success"}}': "0 " * 10 + "1+0x9 2+0x300",
            f'{SWEEPS}{{provider="gcp",result="failed"}}': "0+0x19 0+0.1x300",
            f'{SWEEPS}{{provider="local",result="success"}}': "0+0.1x320",
        },
        quiet_at=195,
        fires_at=205,
        labels={"provider": "gcp"},
        summary="Nobody has looked for orphans at gcp for long.",
    ),
    # Operators that end before their first sweep, one after the other.
    Case(
        "OrphansAreNotLookedFor",
        {
            f'{SWEEPS}{{provider="gcp",result="success",instance="1"}}': "0+0x39 _x300",
            f'{SWEEPS}{{provider="gcp",result="success",instance="2"}}': "_x39 0+0x300",
        },
        quiet_at=55,
        fires_at=65,
        labels={"provider": "gcp"},
        summary="Nobody has looked for orphans at gcp for long.",
    ),
    # The one that leads now, and one that led before.
    Case(
        "OrphansAreLeft",
        {
            'proxy_operator_orphans_left{provider="gcp",instance="1"}': "0+0x120",
            'proxy_operator_orphans_left{provider="gcp",instance="2"}': "0+0x9 2+0x120",
        },
        quiet_at=39,
        fires_at=40,
        labels={"provider": "gcp"},
        summary="2 instances at gcp have no Proxy and are not deleted.",
    ),
    Case(
        "OrphansAppear",
        {'proxy_operator_orphans_deleted_total{provider="gcp"}': "0+0x9 1+0x120"},
        quiet_at=9,
        fires_at=11,
        labels={"provider": "gcp"},
        summary="Instances without a Proxy were deleted at gcp.",
    ),
    Case(
        "ProxiesFailed",
        {f'{PROXIES}{{phase="Failed"}}': "0+0x9 2+0x20"},
        quiet_at=14,
        fires_at=15,
        labels={},
        summary="2 proxies ask for what cannot be had.",
    ),
    # Two operators show the same fleet.
    Case(
        "FewProxiesAreReady",
        {
            f'{PROXIES}{{phase="Ready",instance="1"}}': "6+0x9 4+0x30",
            f'{PROXIES}{{phase="Ready",instance="2"}}': "6+0x9 4+0x30",
            f'{PROXIES}{{phase="Unhealthy",instance="1"}}': "4+0x9 6+0x30",
            f'{PROXIES}{{phase="Unhealthy",instance="2"}}': "4+0x9 6+0x30",
            f'{PROXIES}{{phase="Deleting",instance="1"}}': "100+0x60",
        },
        quiet_at=19,
        fires_at=20,
        labels={},
        summary="Only 40% of the proxies are Ready.",
    ),
    Case(
        "ProxiesDoNotComeUp",
        {
            f'{PROXIES}{{phase="Pending"}}': "1+0x80",
            f'{PROXIES}{{phase="Provisioning"}}': "2+0x80",
        },
        quiet_at=29,
        fires_at=30,
        labels={},
        summary="At least 3 proxies have been on their way for long.",
    ),
    Case(
        "ProxiesDoNotGo",
        {f'{PROXIES}{{phase="Deleting"}}': "0+0x9 1+0x80"},
        quiet_at=53,
        fires_at=55,
        labels={},
        summary="At least 1 proxies have been going for long.",
    ),
    Case(
        "ProbeTargetFails",
        {
            'proxy_operator_health_guard_active{target="http://a.example"}': "0+0x30",
            'proxy_operator_health_guard_active{target="http://b.example"}': "0+0x10 1 0+0x30",
        },
        quiet_at=10,
        fires_at=15,
        labels={"target": "http://b.example"},
        summary="The probed page http://b.example fails for everybody.",
    ),
    Case(
        "ProbesStartLate",
        {
            'proxy_operator_probe_lag_seconds_bucket{le="5.0"}': "0+0x60",
            'proxy_operator_probe_lag_seconds_bucket{le="10.0"}': "0+60x60",
            'proxy_operator_probe_lag_seconds_bucket{le="+Inf"}': "0+60x60",
        },
        quiet_at=14,
        fires_at=17,
        labels={},
        summary="Probes start 9.5s late.",
    ),
    Case(
        "LeasesAreRefused",
        {
            'proxy_operator_lease_requests_total{outcome="granted"}': "0+2x60",
            'proxy_operator_lease_requests_total{outcome="no_match"}': "0+8x60",
            'proxy_operator_lease_requests_total{outcome="invalid"}': "0+100x60",
        },
        quiet_at=9,
        fires_at=12,
        labels={},
        summary="80% of the lease requests find no proxy.",
    ),
)

SOUND: Final[Mapping[str, str]] = {
    "up": "1+0x120",
    'leader_election_master_status{name="a",instance="1"}': "1+0x120",
    'leader_election_master_status{name="a",instance="2"}': "0+0x120",
    'workqueue_longest_running_processor_seconds{name="proxy"}': "0+0x120",
    'workqueue_queue_duration_seconds_bucket{name="proxy",le="10.0"}': "0+6x120",
    'workqueue_queue_duration_seconds_bucket{name="proxy",le="100.0"}': "0+6x120",
    'workqueue_queue_duration_seconds_bucket{name="proxy",le="+Inf"}': "0+6x120",
    'controller_runtime_reconcile_errors_total{controller="proxy"}': "0+1x120",
    'controller_runtime_reconcile_total{controller="proxy",result="error"}': "0+1x120",
    'controller_runtime_reconcile_total{controller="proxy",result="success"}': "0+9x120",
    f'{CALLS}{{provider="gcp",op="create",result="permanent"}}': "7+0x120",
    f'{CALLS}{{provider="gcp",op="create",result="quota"}}': "7+0x120",
    f'{CALLS}{{provider="gcp",op="get",result="transient"}}': "0+1x120",
    f'{CALLS}{{provider="gcp",op="get",result="not_found"}}': "0+5x120",
    f'{CALLS}{{provider="gcp",op="get",result="success"}}': "0+5x120",
    f'{CALLS}{{provider="gcp",op="list_by_tag",result="success"}}': "0+1x120",
    f'{CALLS}{{provider="gcp",op="list_by_tag",result="transient"}}': "0+1x120",
    # A fleet that came up faster than it may, for a moment.
    f'{LIMITS}{{provider="gcp",limit="max_creates_per_minute"}}': "0+0x29 1+1x9 10+0x120",
    f'{LIMITS}{{provider="gcp",limit="max_instances"}}': "3+0x120",
    # Every other sweep fails, and what one could not delete, the next one does.
    f'{SWEEPS}{{provider="gcp",result="success"}}': "0+0.05x120",
    f'{SWEEPS}{{provider="gcp",result="failed"}}': "0+0.05x120",
    'proxy_operator_orphans_left{provider="gcp"}': ("1 " * 20 + "0 ") * 6,
    'proxy_operator_orphans_deleted_total{provider="gcp"}': "7+0x120",
    f'{PROXIES}{{phase="Ready"}}': "9+0x120",
    f'{PROXIES}{{phase="Unhealthy"}}': "1+0x120",
    f'{PROXIES}{{phase="Failed"}}': "0+0x120",
    # Some come and go all the time, but there are moments without.
    f'{PROXIES}{{phase="Pending"}}': "0 1 " * 60,
    f'{PROXIES}{{phase="Provisioning"}}': "3 0 " * 60,
    f'{PROXIES}{{phase="Deleting"}}': "0 0 0 2 " * 30,
    'proxy_operator_health_guard_active{target="http://a.example"}': "0+0x120",
    'proxy_operator_probe_lag_seconds_bucket{le="5.0"}': "0+60x120",
    'proxy_operator_probe_lag_seconds_bucket{le="10.0"}': "0+60x120",
    'proxy_operator_probe_lag_seconds_bucket{le="+Inf"}': "0+60x120",
    'proxy_operator_lease_requests_total{outcome="granted"}': "0+8x120",
    'proxy_operator_lease_requests_total{outcome="no_match"}': "0+2x120",
}
"""A fleet with its everyday faults, for two hours: nothing fires."""

EMPTY: Final[Mapping[str, str]] = {
    "up": "1+0x120",
    'leader_election_master_status{name="a"}': "1+0x120",
    # Begins when the operator leads; the first sweep comes an interval later.
    f'{SWEEPS}{{provider="gcp",result="success"}}': "0+0x9 1+0.1x120",
    f'{SWEEPS}{{provider="gcp",result="failed"}}': "0+0x120",
    'proxy_operator_orphans_left{provider="gcp"}': "_x10 0+0x120",
    'proxy_operator_orphans_deleted_total{provider="gcp"}': "0+0x120",
    f'{LIMITS}{{provider="gcp",limit="max_instances"}}': "0+0x120",
    f'{CALLS}{{provider="gcp",op="create",result="permanent"}}': "0+0x120",
    f'{CALLS}{{provider="gcp",op="create",result="quota"}}': "0+0x120",
    f'{CALLS}{{provider="gcp",op="list_by_tag",result="success"}}': "0+0x9 1+0.1x120",
    **{
        f'{PROXIES}{{phase="{phase}"}}': "0+0x120"
        for phase in ("Ready", "Unhealthy", "Failed", "Pending", "Provisioning", "Deleting")
    },
}
"""An operator without a single Proxy."""
