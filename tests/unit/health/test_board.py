from proxy_operator.domain.health import HealthReport
from proxy_operator.health.board import HealthBoard
from proxy_operator.runtime.objects import ObjectKey
from tests.builders import EPOCH

KEY = ObjectKey("default", "p1")
GOOD = HealthReport(is_healthy=True, latency_millis=5, checked_at=EPOCH)
BAD = HealthReport(is_healthy=False, checked_at=EPOCH)


def test_only_accepted_reports_are_shown():
    board, accepts = HealthBoard(), True
    assert not board.publish(KEY, "uid", GOOD)
    assert board.report("uid") is None
    board.subscribe(lambda key: key == KEY and accepts)
    assert board.publish(KEY, "uid", GOOD)
    assert board.report("uid") == GOOD
    accepts = False
    assert not board.publish(KEY, "uid", BAD)
    assert board.report("uid") == GOOD


def test_a_forgotten_report_is_gone():
    board = HealthBoard()
    board.subscribe(lambda _: True)
    board.publish(KEY, "uid", GOOD)
    board.forget("uid")
    board.forget("unknown")
    assert board.report("uid") is None
