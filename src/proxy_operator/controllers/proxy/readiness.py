"""Represent what exists: the address of a running instance, and the verdict on it."""

from proxy_operator.controllers.proxy.context import Pass, whole_seconds
from proxy_operator.domain.condition import (
    ConditionStatus,
    ConditionType,
    HealthyReason,
    find,
)
from proxy_operator.domain.event import BECAME_HEALTHY, BECAME_UNHEALTHY, PROBE_DENIED
from proxy_operator.domain.health import HealthReport, ProbeError
from proxy_operator.domain.proxy import Proxy


def set_address(p: Pass, host: str, port: int) -> None:
    """Stage the address; a verdict on another address does not carry over."""
    status = p.proxy.status
    if (status.ip, status.port) != (host, port):
        status.ip, status.port, status.latency_millis = host, port, None
        p.set_condition(
            ConditionType.HEALTHY,
            ConditionStatus.UNKNOWN,
            HealthyReason.NOT_PROBED,
            "waiting for the first probe",
        )


def represent_health(p: Pass) -> None:
    """Stage the Healthy condition of a provisioned proxy.

    With no report (yet) the present condition stays: after a restart a fleet keeps its verdicts.
    """
    if not p.ports.health.has_target(p.proxy):
        p.proxy.status.latency_millis = None
        p.set_condition(
            ConditionType.HEALTHY,
            ConditionStatus.UNKNOWN,
            HealthyReason.NO_PROBE_TARGET,
            "set healthCheck.url, or start the operator with --health-url",
        )
        return
    report = p.ports.health.report(p.uid)
    if report is not None:
        _show_report(p, report)
    elif _reason(p.proxy) == HealthyReason.NO_PROBE_TARGET:
        p.set_condition(
            ConditionType.HEALTHY,
            ConditionStatus.UNKNOWN,
            HealthyReason.NOT_PROBED,
            "waiting for the first probe",
        )


def _reason(proxy: Proxy) -> str:
    row = find(proxy.status.conditions, ConditionType.HEALTHY)
    return row.reason if row else ""


def _show_report(p: Pass, report: HealthReport) -> None:
    row = find(p.proxy.status.conditions, ConditionType.HEALTHY)
    before = row.status if row else ConditionStatus.UNKNOWN
    status = p.proxy.status
    status.last_health_check_at = whole_seconds(report.checked_at)
    status.latency_millis = report.latency_millis if report.is_healthy else None
    if report.is_healthy:
        p.set_condition(
            ConditionType.HEALTHY, ConditionStatus.TRUE, HealthyReason.PROBE_SUCCEEDED, ""
        )
        if before is not ConditionStatus.TRUE:
            p.tell(BECAME_HEALTHY, "a probe through the proxy succeeded")
        return
    if report.error is ProbeError.NOT_ALLOWED:
        _show_denial(p, report.detail)
        return
    reason = (
        HealthyReason.AUTH_FAILED if report.error is ProbeError.AUTH else HealthyReason.PROBE_FAILED
    )
    message = f"{report.error}: {report.detail}" if report.error else report.detail
    # Another class is news: a password that is refused needs other hands than a dead proxy.
    is_news = before is not ConditionStatus.FALSE or _reason(p.proxy) != reason
    p.set_condition(ConditionType.HEALTHY, ConditionStatus.FALSE, reason, message)
    if is_news:
        p.tell(BECAME_UNHEALTHY, message)


def _show_denial(p: Pass, message: str) -> None:
    was_denied = _reason(p.proxy) == HealthyReason.NOT_ALLOWED
    p.set_condition(
        ConditionType.HEALTHY, ConditionStatus.FALSE, HealthyReason.NOT_ALLOWED, message
    )
    if not was_denied:
        p.tell(PROBE_DENIED, message)
