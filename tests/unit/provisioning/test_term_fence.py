import pytest

from proxy_operator.provisioning.errors import FencedError
from proxy_operator.provisioning.term_fence import TermFence
from proxy_operator.runtime.election import Timing
from proxy_operator.runtime.term import Term
from tests.unit.runtime.test_term import Boottime, Watch


def test_open_while_the_term_is():
    clock = Boottime()
    term = Term(Timing(), Watch(), clock)
    fence = TermFence(term)
    with pytest.raises(FencedError):
        fence.check()
    assert not fence.is_open
    term.extend(clock.now)
    fence.check()
    assert fence.is_open
    clock.now += 10
    with pytest.raises(FencedError, match="no longer leads"):
        fence.check()
    assert not fence.is_open
