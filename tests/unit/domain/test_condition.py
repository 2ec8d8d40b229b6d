from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.domain.condition import (
    MOST_MESSAGE,
    Condition,
    ConditionStatus,
    ConditionType,
    find,
    is_true,
    with_condition,
)
from tests.builders import EPOCH

LATER = EPOCH + timedelta(minutes=1)


def provisioned(rows=(), status=ConditionStatus.TRUE, now=EPOCH, **fields):
    fields = {"reason": "Created", "message": "", "observed_generation": 1, **fields}
    return with_condition(rows, ConditionType.PROVISIONED, status=status, now=now, **fields)


def test_a_new_row_is_appended():
    rows = provisioned()
    both = with_condition(
        rows,
        ConditionType.HEALTHY,
        status=ConditionStatus.FALSE,
        reason="ProbeFailed",
        message="m",
        observed_generation=3,
        now=LATER,
    )
    assert both[0] == rows[0]
    assert both[1] == Condition(
        type="Healthy",
        status=ConditionStatus.FALSE,
        reason="ProbeFailed",
        message="m",
        observed_generation=3,
        last_transition_at=LATER,
    )


def test_the_same_again_is_no_change():
    rows = provisioned()
    assert provisioned(rows, now=LATER) == rows


@pytest.mark.parametrize("changed", [{"reason": "R"}, {"message": "m"}, {"observed_generation": 2}])
def test_only_a_flip_of_status_moves_the_time(changed):
    (row,) = provisioned(provisioned(), now=LATER, **changed)
    assert row.last_transition_at == EPOCH
    (flipped,) = provisioned(provisioned(), ConditionStatus.UNKNOWN, now=LATER, **changed)
    assert flipped.last_transition_at == LATER


def test_a_message_fits_the_schema():
    (row,) = provisioned(message="é" * (MOST_MESSAGE + 1))
    wire = msgspec.to_builtins(row)
    assert msgspec.convert(wire, Condition) == row
    assert len(row.message) == MOST_MESSAGE


def test_find_and_is_true():
    rows = provisioned()
    assert find(rows, ConditionType.PROVISIONED) is rows[0]
    assert find(rows, ConditionType.HEALTHY) is None
    assert is_true(rows, ConditionType.PROVISIONED)
    assert not is_true(rows, ConditionType.HEALTHY)
    assert not is_true(provisioned(status=ConditionStatus.UNKNOWN), ConditionType.PROVISIONED)


def test_the_wire_form_is_that_of_kubernetes():
    assert msgspec.to_builtins(provisioned()[0]) == {
        "type": "Provisioned",
        "status": "True",
        "reason": "Created",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "message": "",
        "observedGeneration": 1,
    }


@given(
    st.lists(
        st.tuples(st.sampled_from(ConditionType), st.sampled_from(ConditionStatus)), max_size=20
    )
)
def test_one_row_per_type_and_the_time_of_its_last_flip(writes):
    rows: tuple[Condition, ...] = ()
    status: dict[ConditionType, ConditionStatus] = {}
    flipped: dict[ConditionType, int] = {}
    for minute, (kind, value) in enumerate(writes):
        if status.get(kind) is not value:
            status[kind], flipped[kind] = value, minute
        rows = with_condition(
            rows,
            kind,
            status=value,
            reason="R",
            message="",
            observed_generation=minute,
            now=EPOCH + timedelta(minutes=minute),
        )
    assert [row.type for row in rows] == list(status)
    for row in rows:
        kind = ConditionType(row.type)
        assert row.status is status[kind]
        assert row.last_transition_at == EPOCH + timedelta(minutes=flipped[kind])
