from itertools import product

import pytest

from proxy_operator.domain.condition import (
    Condition,
    ConditionStatus,
    ConditionType,
    ProvisionedReason,
)
from proxy_operator.domain.phase import RULES, compute_phase
from proxy_operator.domain.proxy import Phase, ProxyStatus
from tests.builders import EPOCH, a_proxy

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
R = ProvisionedReason


def in_phase(provisioned=None, healthy=None, *, generation=1, observed=1, deleting=False):
    """Phase of a proxy whose conditions are (status, reason) and a status of Healthy."""
    rows = []
    if provisioned is not None:
        status, reason = provisioned
        rows.append(row(ConditionType.PROVISIONED, status, reason, observed))
    if healthy is not None:
        rows.append(row(ConditionType.HEALTHY, healthy, "any", observed))
    meta = {"generation": generation, "deletion_timestamp": EPOCH if deleting else None}
    return compute_phase(a_proxy(meta=meta, status=ProxyStatus(conditions=tuple(rows))))


def row(kind, status, reason, observed):
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        last_transition_at=EPOCH,
        observed_generation=observed,
    )


@pytest.mark.parametrize(
    ("provisioned", "healthy", "phase"),
    [
        (None, None, Phase.PENDING),
        ((FALSE, R.PROVISIONING), None, Phase.PROVISIONING),
        ((FALSE, R.REPLACING), UNKNOWN, Phase.PROVISIONING),
        ((FALSE, R.REPLACING), TRUE, Phase.PROVISIONING),
        ((TRUE, R.CREATED), None, Phase.PROVISIONING),
        ((TRUE, R.CREATED), UNKNOWN, Phase.PROVISIONING),
        ((TRUE, R.CREATED), TRUE, Phase.READY),
        ((TRUE, R.EXTERNAL_ENDPOINT), TRUE, Phase.READY),
        ((TRUE, R.CREATED), FALSE, Phase.UNHEALTHY),
        ((TRUE, R.PROVIDER_ERROR), TRUE, Phase.READY),
        ((TRUE, R.PERMANENT_ERROR), TRUE, Phase.READY),
        ((FALSE, R.PERMANENT_ERROR), None, Phase.FAILED),
        ((FALSE, R.PERMANENT_ERROR), TRUE, Phase.FAILED),
        ((UNKNOWN, R.PERMANENT_ERROR), None, Phase.FAILED),
        ((FALSE, R.QUOTA_EXCEEDED), None, Phase.PENDING),
        ((FALSE, R.CLOUD_INIT_ERROR), None, Phase.PENDING),
        ((FALSE, R.CREDENTIALS_ERROR), None, Phase.PENDING),
        ((FALSE, R.PROVIDER_ERROR), None, Phase.PENDING),
        ((FALSE, R.INSTANCE_NEVER_APPEARED), None, Phase.PENDING),
        ((FALSE, R.DELETING), None, Phase.PENDING),
    ],
)
def test_phase(provisioned, healthy, phase):
    assert in_phase(provisioned, healthy) is phase


def test_an_error_of_an_earlier_generation_is_not_failed():
    error = (FALSE, R.PERMANENT_ERROR)
    assert in_phase(error, generation=2, observed=1) is Phase.PENDING
    assert in_phase(error, generation=2, observed=2) is Phase.FAILED


@pytest.mark.parametrize(
    ("status", "reason", "healthy"), [*product(ConditionStatus, R, [None, *ConditionStatus])]
)
def test_deleting_comes_before_everything(status, reason, healthy):
    assert in_phase((status, reason), healthy, deleting=True) is Phase.DELETING


@pytest.mark.parametrize(("reason", "healthy"), [*product(R, [None, *ConditionStatus])])
def test_ready_needs_both_conditions(reason, healthy):
    for status in ConditionStatus:
        ready = in_phase((status, reason), healthy) is Phase.READY
        assert ready == (status is TRUE and healthy is TRUE)


def test_every_rule_can_be_the_first_to_match():
    phases = {phase for _, _, phase in RULES}
    assert phases == set(Phase)
    assert len({sentence for sentence, _, _ in RULES}) == len(RULES)
