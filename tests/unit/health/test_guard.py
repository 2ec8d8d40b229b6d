import math
from datetime import timedelta

import pytest

from proxy_operator.domain.health import ProbeError
from proxy_operator.health.guard import (
    Answer,
    Change,
    Facts,
    Guard,
    Stage,
    is_mass_failure,
    is_target_side,
    keeps,
    next_moment,
    step,
)
from proxy_operator.health.ports import ProbeOutcome, ProbePhases

WELL, FAILS, UNKNOWN = Answer.WELL, Answer.FAILS, Answer.UNKNOWN
QUIET, HOLDING, SPENT = Stage.QUIET, Stage.HOLDING, Stage.SPENT

ASKING = Guard(is_asking=True, asked_at=100)
HELD = Guard(HOLDING, asked_at=100, ends_at=190)
HELD_AND_ASKING = HELD._replace(is_asking=True, asked_at=130)
DONE = Guard(SPENT, asked_at=160, ends_at=190, released_at=190)
WELL_SINCE_150 = Guard(asked_at=130, ends_at=190, released_at=150, well_at=150)


def facts(now: float, failing: int = 10, **more) -> Facts:
    return Facts(now=now, interval=30, healthy=10, failing=failing, **more)


@pytest.mark.parametrize(
    ("error", "reached", "connect_status", "is_target_side_"),
    [
        (ProbeError.REFUSED, False, None, False),
        (ProbeError.DNS, False, None, False),
        (ProbeError.NOT_ALLOWED, False, None, False),
        (ProbeError.AUTH, True, None, False),
        (ProbeError.TIMEOUT, False, None, False),
        (ProbeError.TIMEOUT, True, None, True),
        (ProbeError.TLS, False, None, False),
        (ProbeError.TLS, True, None, True),
        (ProbeError.STATUS, True, None, True),
        (ProbeError.STATUS, True, 502, True),
        (ProbeError.STATUS, True, 503, True),
        (ProbeError.STATUS, True, 504, True),
        (ProbeError.STATUS, True, 403, False),
        (ProbeError.STATUS, True, 500, False),
        (ProbeError.PROTOCOL, False, None, False),
        (ProbeError.PROTOCOL, True, None, True),
        (None, True, None, False),
    ],
    ids=[
        "the proxy refuses",
        "the proxy has no address",
        "the lists forbid it",
        "407",
        "slow to connect to",
        "no answer in time",
        "TLS of the proxy itself",
        "TLS in the tunnel",
        "a bad status",
        "CONNECT: bad gateway",
        "CONNECT: unavailable",
        "CONNECT: gateway timeout",
        "CONNECT: forbidden by the proxy",
        "CONNECT: the proxy broke",
        "the URL is unusable",
        "hung up or talked nonsense",
        "a success",
    ],
)
def test_what_can_be_the_targets_fault(error, reached, connect_status, is_target_side_):
    outcome = ProbeOutcome(
        error=error,
        latency=timedelta(seconds=1),
        phases=ProbePhases(connect=0.1 if reached else None),
        connect_status=connect_status,
    )
    assert is_target_side(outcome) is is_target_side_


def test_every_class_of_error_was_thought_of():
    assert len(ProbeError) == 8


@pytest.mark.parametrize(
    ("healthy", "failing", "is_mass"),
    [
        (2, 2, False),
        (3, 3, True),
        (5, 3, True),
        (6, 3, False),
        (7, 4, True),
        (5000, 2500, False),
        (5000, 2501, True),
        (0, 0, False),
    ],
)
def test_most_of_at_least_three(healthy, failing, is_mass):
    assert is_mass_failure(healthy, failing) is is_mass


@pytest.mark.parametrize(
    ("guard", "given", "after", "change"),
    [
        (Guard(), facts(100, failing=5), Guard(), None),
        (Guard(), facts(100), ASKING, Change.ASK),
        (ASKING, facts(101), ASKING, None),
        (ASKING, facts(102, answer=FAILS), HELD, Change.HELD),
        (ASKING, facts(102, answer=WELL), Guard(asked_at=100), Change.NOT_HELD),
        (ASKING, facts(102, answer=UNKNOWN), Guard(asked_at=100), Change.NOT_HELD),
        (ASKING, facts(102, failing=5, answer=FAILS), Guard(asked_at=100), Change.NOT_HELD),
        (Guard(asked_at=100), facts(129.9), Guard(asked_at=100), None),
        (Guard(asked_at=100), facts(130), Guard(is_asking=True, asked_at=130), Change.ASK),
        (HELD, facts(129.9), HELD, None),
        (HELD, facts(130), HELD_AND_ASKING, Change.ASK),
        (HELD_AND_ASKING, facts(131), HELD_AND_ASKING, None),
        (HELD_AND_ASKING, facts(131, answer=FAILS), HELD._replace(asked_at=130), None),
        (HELD_AND_ASKING, facts(131, answer=UNKNOWN), HELD._replace(asked_at=130), None),
        (HELD_AND_ASKING, facts(150, answer=WELL), WELL_SINCE_150, Change.RECOVERED),
        (HELD, facts(120, passes=2), HELD, None),
        (HELD_AND_ASKING, facts(150, passes=3), WELL_SINCE_150, Change.RECOVERED),
        (HELD_AND_ASKING, facts(150, failing=5, passes=1), WELL_SINCE_150, Change.RECOVERED),
        (
            HELD_AND_ASKING,
            facts(150, failing=5),
            WELL_SINCE_150._replace(well_at=None),
            Change.EASED,
        ),
        (HELD._replace(asked_at=160), facts(189.9), HELD._replace(asked_at=160), None),
        (HELD._replace(asked_at=160), facts(190), DONE, Change.LASTED),
        (HELD._replace(asked_at=160, is_asking=True), facts(190), DONE, Change.LASTED),
        (HELD._replace(asked_at=160), facts(190, passes=3), DONE, Change.LASTED),
        (DONE, facts(500), DONE, None),
        (DONE, facts(500, failing=5), DONE._replace(stage=QUIET), None),
        (
            WELL_SINCE_150._replace(is_asking=True, asked_at=179),
            facts(180, answer=FAILS),
            WELL_SINCE_150._replace(stage=HOLDING, asked_at=179),
            Change.HELD,
        ),
        (
            WELL_SINCE_150._replace(is_asking=True, asked_at=180),
            facts(181, answer=FAILS),
            WELL_SINCE_150._replace(stage=HOLDING, asked_at=180, ends_at=270),
            Change.HELD,
        ),
        (
            WELL_SINCE_150._replace(is_asking=True, asked_at=179),
            facts(190, answer=FAILS),
            WELL_SINCE_150._replace(stage=SPENT, asked_at=179),
            Change.NOT_HELD,
        ),
    ],
    ids=[
        "half of them fail: nothing",
        "most fail: the target is asked",
        "it is being asked: wait",
        "it fails too: held, for three intervals from the question",
        "it answers: the proxies are to blame",
        "it could not be asked: nothing is held on a guess",
        "it fails, but most get through meanwhile: not held",
        "asked less than an interval ago: not again",
        "most still fail an interval later: asked again",
        "held, nothing new",
        "held for an interval: asked again",
        "held and being asked: wait",
        "it still fails: held on",
        "it could not be asked again: held on",
        "it answers: released",
        "two in a row got through: not enough",
        "three in a row got through: released",
        "one got through, and most no longer fail: released",
        "others broke or went, and most no longer fail: released, and nobody is excused",
        "just before the end",
        "three intervals: released",
        "three intervals, while being asked: released",
        "the end comes first",
        "released for its age: no second hold while most fail",
        "most get through again: as before it all",
        "fails again within an interval: the time runs on",
        "fails again later: time of its own",
        "fails again, and the time is up: not held",
    ],
)
def test_steps(guard, given, after, change):
    assert step(guard, given) == (after, change)


@pytest.mark.parametrize(
    ("guard", "now", "began_at", "is_kept"),
    [
        (Guard(), 100, 99, False),
        (ASKING, 101, 99, True),
        (HELD, 189.9, 189, True),
        (HELD, 190, 189, False),
        (DONE, 200, 199, False),
        (WELL_SINCE_150, 151, 149.9, True),
        (WELL_SINCE_150, 151, 150, False),
    ],
    ids=[
        "nothing is wrong with the target",
        "until it has answered",
        "held",
        "never longer, even if nobody has noticed yet",
        "held for as long as may be",
        "on its way before the target was well",
        "sent to a target that is well",
    ],
)
def test_whom_a_failure_leaves_healthy(guard, now, began_at, is_kept):
    assert keeps(guard, now, began_at) is is_kept


@pytest.mark.parametrize(
    ("guard", "at"),
    [
        (Guard(), None),
        (ASKING, None),
        (HELD, 130),
        (HELD._replace(asked_at=165), 190),
        (HELD_AND_ASKING, 190),
        (DONE, None),
    ],
    ids=["quiet", "asking", "the next question", "the end", "the end, asked or not", "spent"],
)
def test_when_something_is_due(guard, at):
    assert next_moment(guard, 30) == at


@pytest.mark.parametrize("asked_at", [0.1, 1 / 3, 1e5 + 0.7, math.pi * 1e6])
def test_what_is_due_is_done_at_that_moment(asked_at):
    held, _ = step(Guard(is_asking=True, asked_at=asked_at), facts(asked_at, answer=FAILS))
    at = next_moment(held, 30)
    assert at is not None
    assert step(held, facts(at))[1] is Change.ASK
    assert step(held, facts(held.ends_at))[1] is Change.LASTED
