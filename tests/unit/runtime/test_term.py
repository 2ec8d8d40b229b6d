from proxy_operator.runtime.election import Timing
from proxy_operator.runtime.term import Term


class Watch:
    def __init__(self) -> None:
        self.until: float | None = None

    def arm(self, until: float) -> None:
        self.until = until

    def disarm(self) -> None:
        self.until = None


class Boottime:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def a_term() -> tuple[Term, Watch, Boottime]:
    watch, clock = Watch(), Boottime()
    return Term(Timing(), watch, clock), watch, clock


def test_closed_until_a_renewal_succeeds():
    term, watch, _ = a_term()
    assert not term.is_open
    assert term.remaining() == 0
    assert watch.until is None


def test_counted_from_when_the_renewal_was_asked_for():
    term, watch, clock = a_term()
    asked_at = term.now()
    clock.now += 4
    term.extend(asked_at)
    assert term.is_open
    assert term.remaining() == 6
    assert watch.until == 1015
    clock.now = 1009.999
    assert term.is_open
    clock.now = 1010
    assert not term.is_open
    assert term.remaining() == 0


def test_a_renewal_that_took_too_long_is_no_news():
    term, watch, clock = a_term()
    clock.now = 1010
    term.extend(1000)
    assert not term.is_open
    assert watch.until is None


def test_what_works_after_the_loss_is_still_watched():
    term, watch, _ = a_term()
    term.extend(1000)
    term.lose()
    assert not term.is_open
    assert watch.until == 1015


def test_closing_lets_the_process_live():
    term, watch, _ = a_term()
    term.extend(1000)
    term.close()
    assert not term.is_open
    assert watch.until is None
