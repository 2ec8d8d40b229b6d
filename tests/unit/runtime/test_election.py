from dataclasses import replace
from datetime import timedelta

import pytest

from proxy_operator.runtime.election import LockRecord, Observation, Timing, claimed, released
from tests.builders import EPOCH

LEASE = timedelta(seconds=15)
OTHERS = LockRecord("other", LEASE, EPOCH, EPOCH, 3)
OURS = replace(OTHERS, holder="me")


def an_observation(record: LockRecord | None, at: float = 100.0) -> Observation:
    seen = Observation("me", LEASE)
    if record is not None:
        seen.see(record, at)
    return seen


@pytest.mark.parametrize(
    ("record", "now", "free_in"),
    [
        pytest.param(None, 100.0, 0.0, id="nothing seen: free"),
        pytest.param(OTHERS, 100.0, 15.0, id="just seen to change: a whole lease"),
        pytest.param(OTHERS, 114.5, 0.5, id="up to the end of it"),
        pytest.param(OTHERS, 115.0, 0.0, id="expired"),
        pytest.param(OURS, 100.0, 0.0, id="ours: at once"),
        pytest.param(replace(OTHERS, holder=""), 100.0, 0.0, id="released: at once"),
        pytest.param(replace(OTHERS, duration=2 * LEASE), 120.0, 10.0, id="as its holder says"),
        pytest.param(replace(OTHERS, duration=timedelta(0)), 110.0, 5.0, id="no duration: ours"),
        pytest.param(
            replace(OTHERS, renewed_at=EPOCH - timedelta(days=9)), 110.0, 5.0, id="clock behind"
        ),
        pytest.param(
            replace(OTHERS, renewed_at=EPOCH + timedelta(days=9)), 115.0, 0.0, id="clock ahead"
        ),
    ],
)
def test_when_a_record_is_free(record: LockRecord | None, now: float, free_in: float):
    assert an_observation(record).free_in(now) == free_in


def test_only_a_change_counts_as_renewal():
    seen = an_observation(OTHERS)
    seen.see(replace(OTHERS), 110.0)
    assert seen.free_in(110.0) == 5.0
    seen.see(replace(OTHERS, renewed_at=EPOCH + timedelta(microseconds=1)), 112.0)
    assert seen.free_in(112.0) == 15.0


def test_who_holds_it():
    assert (an_observation(None).rival, an_observation(None).is_ours) == ("", False)
    assert (an_observation(OTHERS).rival, an_observation(OTHERS).is_ours) == ("other", False)
    assert (an_observation(OURS).rival, an_observation(OURS).is_ours) == ("", True)


LATER = EPOCH + timedelta(seconds=2)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(None, LockRecord("me", LEASE, LATER, LATER, 0), id="the first one"),
        pytest.param(OTHERS, LockRecord("me", LEASE, LATER, LATER, 4), id="taken over"),
        pytest.param(
            replace(OTHERS, holder=""), LockRecord("me", LEASE, LATER, LATER, 4), id="was released"
        ),
        pytest.param(OURS, LockRecord("me", LEASE, EPOCH, LATER, 3), id="renewed"),
    ],
)
def test_a_claim(seen: LockRecord | None, expected: LockRecord):
    assert claimed(seen, "me", LEASE, LATER) == expected


def test_a_renewal_never_looks_like_the_one_before():
    again = claimed(OURS, "me", LEASE, EPOCH)
    assert again != OURS
    assert claimed(again, "me", LEASE, EPOCH) != again


def test_a_release_keeps_the_count_and_names_nobody():
    expected = LockRecord("", timedelta(seconds=1), LATER, LATER, 3)
    assert released(OURS, LATER) == expected


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((10, 10, 2), "lease duration must be longer"),
        ((15.5, 10, 2), "whole seconds"),
        ((15, 2.4, 2), "over 1.2 times the retry period"),
        ((15, 10, 0), "longer than nothing"),
    ],
)
def test_timing_that_does_not_fit(seconds: tuple[float, float, float], said: str):
    with pytest.raises(ValueError, match=said):
        Timing(*(timedelta(seconds=s) for s in seconds))


def test_default_timing_is_that_of_core_clients():
    assert Timing() == Timing(*(timedelta(seconds=s) for s in (15, 10, 2)))
