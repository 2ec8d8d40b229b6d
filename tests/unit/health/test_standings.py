from datetime import timedelta

from proxy_operator.health.standings import Pace, Standings
from tests.builders import an_external

PROXY = an_external()
USUAL = Pace(timedelta(seconds=30), timedelta(seconds=5))
BRISK = Pace(timedelta(seconds=1), timedelta(seconds=1))


def of(*uids: str, pace: Pace = USUAL) -> Standings:
    standings = Standings()
    for uid in uids:
        standings.put(uid, pace)
    return standings


def test_a_new_proxy_is_not_healthy():
    standings = of("a")
    assert (len(standings), standings.healthy, standings.failing) == (1, 0, {})


def test_a_proxy_that_fails_was_healthy_whatever_became_of_it():
    standings = of("a", "b")
    standings.note("a", is_healthy=True)
    standings.note_failure("a", PROXY)
    assert (standings.healthy, list(standings.failing)) == (1, ["a"])
    standings.note("a", is_healthy=False)
    assert (standings.healthy, list(standings.failing)) == (0, [])


def test_who_goes_is_not_counted():
    standings = of("a", "b")
    standings.note_failure("a", PROXY)
    standings.remove("a")
    standings.remove("a")
    assert (len(standings), standings.healthy, standings.failing) == (1, 0, {})


def test_the_failing_are_forgiven():
    standings = of("a", "b")
    standings.note_failure("a", PROXY)
    standings.passes = 2
    standings.forgive()
    assert (standings.healthy, standings.failing, standings.passes) == (1, {}, 0)


def test_a_failure_breaks_a_row_of_passes():
    standings = of("a")
    standings.passes = 2
    standings.note_failure("a", PROXY)
    assert standings.passes == 0


def test_the_pace_is_that_of_most():
    standings = of("a", "b")
    standings.put("c", BRISK)
    assert standings.pace == USUAL
    standings.put("b", BRISK)
    assert standings.pace == BRISK
    standings.remove("c")
    assert standings.pace == BRISK, "of several, the shortest"
    standings.remove("b")
    assert standings.pace == USUAL
