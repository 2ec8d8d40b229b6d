import uuid
from datetime import timedelta

import pytest

from proxy_operator.health.schedule import Due, Schedule, following, jitter, second


def drain(schedule: Schedule, now: float) -> list[Due]:
    popped: list[Due] = []
    while due := schedule.pop(now):
        popped.append(due)
    return popped


def test_the_longest_due_comes_first_and_none_too_early():
    schedule = Schedule()
    for uid, at in (("c", 3.0), ("a", 1.0), ("b", 2.0)):
        schedule.put(uid, at)
    assert schedule.next_at() == 1.0
    assert drain(schedule, 2.0) == [Due("a", 1.0), Due("b", 2.0)]
    assert schedule.pop(2.0) is None
    assert len(schedule) == 1


def test_a_later_arrangement_replaces_the_earlier():
    schedule = Schedule()
    schedule.put("a", 1.0)
    schedule.put("a", 5.0)
    assert schedule.pop(4.0) is None
    schedule.put("a", 2.0)
    assert drain(schedule, 10.0) == [Due("a", 2.0)]


def test_a_removed_proxy_never_comes_due():
    schedule = Schedule()
    schedule.put("a", 1.0)
    schedule.remove("a")
    schedule.remove("unknown")
    assert schedule.next_at() is None
    assert schedule.pop(10.0) is None
    schedule.put("a", 3.0)
    assert drain(schedule, 10.0) == [Due("a", 3.0)]


def test_moves_do_not_pile_up():
    schedule = Schedule()
    for moment in range(10_000):
        schedule.put("a", float(moment))
        schedule.put("b", float(moment))
    assert len(schedule._heap) <= 2 * 2 + 65
    assert [due.uid for due in drain(schedule, 1e9)] == ["a", "b"]


def test_one_newcomer_does_not_wait():
    schedule = Schedule()
    assert schedule.newcomer_slot(100.0) == 100.0
    assert schedule.newcomer_slot(200.0) == 200.0


def test_a_hundred_newcomers_are_spread_over_seconds():
    schedule = Schedule()
    slots = [schedule.newcomer_slot(0.0) for _ in range(100)]
    assert slots == sorted(slots)
    assert max(sum(s <= slot < s + 1 for slot in slots) for s in range(6)) <= 21


def test_thousands_of_newcomers_do_not_wait_for_minutes():
    schedule = Schedule()
    slots = [schedule.newcomer_slot(0.0) for _ in range(5000)]
    assert slots[-1] < 20


def test_jitter_is_even_and_fixed():
    uids = [str(uuid.UUID(int=n, version=4)) for n in range(2000)]
    tenths = [int(jitter(uid) * 10) for uid in uids]
    assert {tenths.count(tenth) // 100 for tenth in range(10)} <= {1, 2}
    assert jitter("x") == jitter("x")
    assert all(0 <= jitter(uid) < 1 for uid in uids)


@pytest.mark.parametrize(
    ("due_at", "now", "at"), [(10, 10, 40), (10, 39, 40), (10, 40.5, 70), (10, 205, 220)]
)
def test_missed_beats_are_left_out(due_at, now, at):
    assert following(due_at, now, timedelta(seconds=30)) == at


def test_newcomers_end_up_all_over_the_interval():
    moments = [second(0.0, f"uid-{n}", timedelta(seconds=30)) for n in range(300)]
    assert all(15 <= moment < 45 for moment in moments)
    assert {int(moment) % 30 for moment in moments} == set(range(30))
