import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.changes import Change, Selector
from proxy_operator.runtime.objects import WatchEvent, WatchEventType
from tests.builders import a_proxy

ADDED, MODIFIED, DELETED = WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED
RED = a_proxy("p1", meta={"labels": {"team": "red"}})
BLUE = a_proxy("p1", meta={"labels": {"team": "blue"}})
BOTH_RED = Selector(Proxy, "default", {"team": "red"})


@pytest.mark.parametrize(
    ("what", "now", "before", "told", "shown"),
    [
        (ADDED, RED, None, ADDED, RED),
        (ADDED, BLUE, None, None, None),
        (MODIFIED, RED, None, MODIFIED, RED),
        (MODIFIED, BLUE, None, None, None),
        (MODIFIED, RED, BLUE, ADDED, RED),
        (MODIFIED, BLUE, RED, DELETED, RED),
        (DELETED, RED, None, DELETED, RED),
        (DELETED, BLUE, None, None, None),
        (DELETED, BLUE, RED, DELETED, RED),
        (DELETED, RED, BLUE, None, None),
    ],
)
def test_what_a_watcher_by_labels_is_told(what, now, before, told, shown):
    event = BOTH_RED.event_of(Change(7, what, now, before))
    assert event == (None if told is None else WatchEvent(told, shown, "7"))


@pytest.mark.parametrize(
    ("selector", "is_match"),
    [
        (Selector(Proxy, None, {}), True),
        (Selector(Proxy, "default", {}), True),
        (Selector(Proxy, "other", {}), False),
        (Selector(Secret, None, {}), False),
        (Selector(Proxy, None, {"team": "red", "tier": "1"}), False),
    ],
)
def test_what_a_selector_matches(selector: Selector, is_match: bool):
    assert selector.matches(RED) is is_match
