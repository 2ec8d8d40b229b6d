"""The dashboard for Grafana, from a table of panels: deploy/monitoring/dashboard.json.

The one rule: no query names a data source or a job; both are chosen above the panels.
"""

import json
from typing import Any, Final, NamedTuple

_COLUMNS: Final = 24
_HEIGHT: Final = 8
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


class Query(NamedTuple):
    """One expression, and how its series are named."""

    expr: str
    legend: str


class Panel(NamedTuple):
    """One graph, or with `type` "stat" one number."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    width: int = 8
    type: str = "timeseries"
    description: str = ""


class Row(NamedTuple):
    """Panels under one title; their widths fill whole lines of 24."""

    title: str
    panels: tuple[Panel, ...]


def _rate(metric: str, by: str, where: str = "") -> str:
    selector = f'{metric}{{job="$job"{where}}}'
    return f"sum by ({by}) (rate({selector}[$__rate_interval]))"


def _quantile(q: float, metric: str, by: str = "") -> str:
    return f"histogram_quantile({q}, {_rate(f'{metric}_bucket', f'{by}le')})"


# Operators that do not lead may show the fleet too, so the greatest count is the true one.
_PHASES: Final = 'max by (phase) (proxy_operator_proxies{job="$job"})'
_READY: Final = (
    'max(proxy_operator_proxies{job="$job",phase="Ready"}) / '
    'sum(max by (phase) (proxy_operator_proxies{job="$job",phase!="Deleting"}))'
)
_CALLS: Final = "proxy_operator_provider_requests_total"
_SWEPT_AT: Final = "proxy_operator_sweep_last_success_timestamp_seconds"
_DELETED: Final = "proxy_operator_orphans_deleted_total"
_LEFT: Final = "proxy_operator_orphans_left"
_CALL_TIME: Final = "proxy_operator_provider_request_duration_seconds"
_PROBE_TIME: Final = "proxy_operator_healthcheck_duration_seconds"
_HELD: Final = 'max by (target) (proxy_operator_health_guard_active{job="$job"})'
_PASS_TIME: Final = "controller_runtime_reconcile_time_seconds"
_WAIT: Final = "workqueue_queue_duration_seconds"

ROWS: Final = (
    Row(
        "Fleet",
        (
            Panel(
                "Leaders",
                "none",
                (Query('sum(leader_election_master_status{job="$job"})', "leaders"),),
                width=4,
                type="stat",
                description="1 in a cluster; 0 means that nobody acts.",
            ),
            Panel("Ready", "percentunit", (Query(_READY, "ready"),), width=4, type="stat"),
            Panel("Proxies by phase", "none", (Query(_PHASES, "{{phase}}"),)),
            Panel(
                "Active leases",
                "none",
                (Query('max(proxy_operator_leases_active{job="$job"})', "leases"),),
            ),
            Panel(
                "Lease requests",
                "reqps",
                (Query(_rate("proxy_operator_lease_requests_total", "outcome"), "{{outcome}}"),),
                width=24,
            ),
        ),
    ),
    Row(
        "Probes",
        (
            Panel(
                "Time of probes",
                "s",
                (
                    Query(_quantile(0.5, _PROBE_TIME), "half"),
                    Query(_quantile(0.95, _PROBE_TIME), "95 %"),
                ),
                description="Up to the first byte, or up to the failure.",
            ),
            Panel(
                "Failing most",
                "reqps",
                (
                    Query(
                        f"topk(10, {_rate('proxy_operator_healthcheck_failures_total', 'proxy')})",
                        "{{proxy}}",
                    ),
                ),
            ),
            Panel(
                "How late probes start",
                "s",
                (Query(_quantile(0.9, "proxy_operator_probe_lag_seconds"), "90 %"),),
                description="Growing means too few --probe-workers.",
            ),
            Panel(
                "Targets whose failure is held against no proxy",
                "none",
                (Query(_HELD, "{{target}}"),),
                width=24,
                description="1 while most proxies and the target itself fail.",
            ),
        ),
    ),
    Row(
        "Providers",
        (
            Panel(
                "Calls by result",
                "reqps",
                (Query(_rate(_CALLS, "provider, result"), "{{provider}} {{result}}"),),
            ),
            Panel(
                "Creates and deletes",
                "reqps",
                (
                    Query(
                        _rate(_CALLS, "provider, op", ',op=~"create|delete",result="success"'),
                        "{{provider}} {{op}}",
                    ),
                ),
                description="More creates than deletes is growth, and a growing bill.",
            ),
            Panel(
                "Time of calls, 95 %",
                "s",
                (Query(_quantile(0.95, _CALL_TIME, "provider, op, "), "{{provider}} {{op}}"),),
            ),
            Panel(
                "Orphans",
                "none",
                (
                    Query(
                        f'sum by (provider) (increase({_DELETED}{{job="$job"}}[1h]))',
                        "{{provider}} deleted within the hour",
                    ),
                    Query(f'max by (provider) ({_LEFT}{{job="$job"}})', "{{provider}} left"),
                ),
                description="Instances without a Proxy. Those left cost money.",
            ),
            Panel(
                "Since the last sweep",
                "s",
                (Query(f'time() - max by (provider) ({_SWEPT_AT}{{job="$job"}})', "{{provider}}"),),
                description="Should not be much longer than --gc-interval.",
            ),
            Panel(
                "Refused by own limits",
                "reqps",
                (
                    Query(
                        _rate("proxy_operator_own_limit_refusals_total", "provider, limit"),
                        "{{provider}} {{limit}}",
                    ),
                ),
                description="--max-instances and --max-creates-per-minute.",
            ),
        ),
    ),
    Row(
        "Work",
        (
            Panel(
                "Passes by result",
                "reqps",
                (Query(_rate("controller_runtime_reconcile_total", "result"), "{{result}}"),),
            ),
            Panel("Time of passes, 95 %", "s", (Query(_quantile(0.95, _PASS_TIME), "95 %"),)),
            Panel("Wait for a worker, 90 %", "s", (Query(_quantile(0.9, _WAIT), "90 %"),)),
            Panel(
                "Waiting",
                "none",
                (Query('max(workqueue_depth{job="$job"})', "keys"),),
            ),
            Panel(
                "Workers",
                "none",
                (
                    Query('max(controller_runtime_active_workers{job="$job"})', "busy"),
                    Query('max(controller_runtime_max_concurrent_reconciles{job="$job"})', "all"),
                ),
            ),
            Panel(
                "Oldest pass",
                "s",
                (Query('max(workqueue_longest_running_processor_seconds{job="$job"})', "age"),),
            ),
        ),
    ),
)


def render() -> str:
    """Return deploy/monitoring/dashboard.json."""
    document = {
        "uid": "proxy-operator",
        "title": "proxy-operator",
        "tags": ["proxy-operator"],
        "schemaVersion": 36,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "annotations": {"list": []},
        "panels": _placed(),
    }
    return json.dumps(document, indent=2) + "\n"


def _variables() -> list[dict[str, Any]]:
    return [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
        },
        {
            "name": "job",
            "label": "Job",
            "type": "query",
            "datasource": _SOURCE,
            "query": "label_values(proxy_operator_proxies, job)",
            "refresh": 2,
            "sort": 1,
        },
    ]


def _placed() -> list[dict[str, Any]]:
    """Lay the rows out from the top, each panel right of the last one while it fits."""
    placed: list[dict[str, Any]] = []
    top = 0
    for row in ROWS:
        place = {"h": 1, "w": _COLUMNS, "x": 0, "y": top}
        placed.append(
            {
                "id": len(placed) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": place,
                "panels": [],
            }
        )
        left, top = 0, top + 1
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                left, top = 0, top + _HEIGHT
            place = {"h": _HEIGHT, "w": panel.width, "x": left, "y": top}
            placed.append({"id": len(placed) + 1, **_panel(panel), "gridPos": place})
            left += panel.width
        top += _HEIGHT
    return placed


def _panel(panel: Panel) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": _SOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
        }
        for number, query in enumerate(panel.queries)
    ]
    return {
        "type": panel.type,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }
