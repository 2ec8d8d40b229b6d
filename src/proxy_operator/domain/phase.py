"""The phase of a Proxy: an ordered table of rules, first match wins."""

from collections.abc import Callable
from typing import Final

from proxy_operator.domain.condition import (
    ConditionStatus,
    ConditionType,
    ProvisionedReason,
    find,
)
from proxy_operator.domain.proxy import Phase, Proxy

_UNDER_WAY: Final = {ProvisionedReason.PROVISIONING, ProvisionedReason.REPLACING}


def _has_permanent_error(proxy: Proxy) -> bool:
    row = find(proxy.status.conditions, ConditionType.PROVISIONED)
    return (
        row is not None
        and row.status is not ConditionStatus.TRUE
        and row.reason == ProvisionedReason.PERMANENT_ERROR
        and row.observed_generation == proxy.metadata.generation
    )


def _provisioned_with_health(*statuses: ConditionStatus | None) -> Callable[[Proxy], bool]:
    def matches(proxy: Proxy) -> bool:
        provisioned = find(proxy.status.conditions, ConditionType.PROVISIONED)
        healthy = find(proxy.status.conditions, ConditionType.HEALTHY)
        if provisioned is None or provisioned.status is not ConditionStatus.TRUE:
            return False
        return not statuses or (healthy is not None and healthy.status in statuses)

    return matches


def _is_under_way(proxy: Proxy) -> bool:
    row = find(proxy.status.conditions, ConditionType.PROVISIONED)
    return row is not None and row.reason in _UNDER_WAY


RULES: Final[tuple[tuple[str, Callable[[Proxy], bool], Phase], ...]] = (
    ("deletion was asked for", lambda p: p.metadata.is_deleting, Phase.DELETING),
    ("a permanent error at this generation", _has_permanent_error, Phase.FAILED),
    ("provisioned, probes succeed", _provisioned_with_health(ConditionStatus.TRUE), Phase.READY),
    ("provisioned, probes fail", _provisioned_with_health(ConditionStatus.FALSE), Phase.UNHEALTHY),
    ("provisioned, not yet judged", _provisioned_with_health(), Phase.PROVISIONING),
    ("an instance is on its way", _is_under_way, Phase.PROVISIONING),
    ("anything else", lambda _: True, Phase.PENDING),
)


def compute_phase(proxy: Proxy) -> Phase:
    """Return the phase of the first rule that matches."""
    return next(phase for _, matches, phase in RULES if matches(proxy))
