from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.domain.instance import Intent, Outcome, canonical_json, decode_intent
from tests.builders import EPOCH

MOMENTS = st.timedeltas(timedelta(), timedelta(days=9999)).map(lambda span: EPOCH + span)
INTENTS = st.builds(
    Intent,
    attempt=st.integers(1, 10**6),
    request_id=st.text(),
    spec_hash=st.text(),
    created_at=MOMENTS,
    zone=st.text(),
    zones=st.lists(st.text(max_size=5), max_size=3).map(tuple),
    outcome=st.sampled_from(Outcome),
    settled_at=st.none() | MOMENTS,
)


def an_intent(**fields):
    fields = {"attempt": 1, "request_id": "r", "spec_hash": "h", "created_at": EPOCH, **fields}
    return Intent(**fields)


@given(INTENTS)
def test_what_is_recorded_is_read_back(intent):
    assert decode_intent(intent.encode()) == intent


@pytest.mark.parametrize("text", [None, ""])
def test_no_annotation_is_no_intent(text):
    assert decode_intent(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[]",
        "{}",
        '{"attempt":1}',
        an_intent().encode().replace('"attempt":1', '"attempt":"1"'),
        an_intent().encode().replace('"attempt":1', '"attempt":0'),
        an_intent().encode().replace("00:00Z", "00:00"),
        an_intent().encode().replace("2026", "yesterday"),
        an_intent(outcome=Outcome.QUOTA).encode().replace("quota", "whim"),
        "\ud800",
    ],
)
def test_a_damaged_annotation_is_said_so(text):
    with pytest.raises(ValueError, match=r"recorded intent|surrogates"):
        decode_intent(text)


@given(st.text())
def test_any_text_is_an_intent_or_a_value_error(text):
    try:
        found = decode_intent(text)
    except ValueError:
        return
    assert found is None or isinstance(found, Intent)


def test_settled_and_ran():
    later = EPOCH + timedelta(minutes=1)
    intent = an_intent(attempt=3, zone="b", zones=("a",))
    settled = intent.settled(Outcome.STOCK_OUT, later)
    assert (settled.outcome, settled.settled_at, settled.attempt) == (Outcome.STOCK_OUT, later, 3)
    assert settled.ran(are_others_clear=True) == an_intent(attempt=1, zone="b")
    assert settled.ran(are_others_clear=False) == an_intent(attempt=1, zone="b", zones=("a",))


@given(st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)))
def test_equal_values_have_equal_bytes(value):
    assert canonical_json(dict(reversed(value.items()))) == canonical_json(value)
