"""The verbs as pure functions; what they promise to callers is in the contract suite."""

import copy

import pytest

from proxy_operator.domain.kinds import PROXY, SECRET
from proxy_operator.runtime import verbs
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions, WatchEventType

KEY = ObjectKey("default", "p1")
STAMP = verbs.Stamp("uid-1", "2026-01-01T00:00:00Z")
NOW = "2026-01-02T00:00:00Z"
SEEN = Preconditions("uid-1", "5")


def stored(**meta: object) -> verbs.Document:
    target = verbs.Target(PROXY, KEY, None)
    made = verbs.create(target, {"labels": {"a": "1"}, **meta}, {"spec": {"x": 1}}, STAMP)
    return verbs.with_version(made.document, 5)


def test_no_verb_changes_a_document_in_place():
    before = stored(finalizers=["f/1"])
    kept = copy.deepcopy(before)
    target = verbs.Target(PROXY, KEY, before)
    verbs.apply(target, {"labels": {"b": "2"}}, {"spec": {"x": 2}}, STAMP)
    verbs.patch_metadata(target, SEEN, MetadataPatch({"a": None}, {"n": "1"}, []))
    verbs.patch_status(target, SEEN, {"phase": "Ready"})
    verbs.delete(target, None, NOW)
    verbs.with_version(before, 9)
    assert before == kept


def test_only_kinds_with_a_status_have_a_generation():
    made = verbs.create(verbs.Target(SECRET, KEY, None), {}, {"data": {}}, STAMP)
    assert "generation" not in made.document["metadata"]
    assert stored()["metadata"]["generation"] == 1


def test_an_empty_status_is_no_status():
    target = verbs.Target(PROXY, KEY, stored())
    assert verbs.patch_status(target, SEEN, {}) == (target.stored, None)
    ready = verbs.patch_status(target, SEEN, {"phase": "Ready"}).document
    back = verbs.patch_status(verbs.Target(PROXY, KEY, ready), SEEN, {})
    assert back == (target.stored, WatchEventType.MODIFIED)


def test_removing_the_last_label_leaves_no_empty_map():
    target = verbs.Target(PROXY, KEY, stored())
    decision = verbs.patch_metadata(target, SEEN, MetadataPatch({"a": None}))
    assert "labels" not in decision.document["metadata"]


def test_what_is_gone_is_not_found_before_it_conflicts():
    target = verbs.Target(PROXY, KEY, None)
    with pytest.raises(NotFoundError, match="Proxy default/p1 not found"):
        verbs.patch_status(target, SEEN, {})
    with pytest.raises(NotFoundError):
        verbs.delete(target, SEEN, NOW)


def test_a_conflict_says_what_differs():
    target = verbs.Target(PROXY, KEY, stored())
    with pytest.raises(ConflictError, match="its uid is uid-1, not uid-2"):
        verbs.delete(target, Preconditions("uid-2"), NOW)
    with pytest.raises(ConflictError, match="its version is 5, not 4"):
        verbs.patch_status(target, Preconditions("uid-1", "4"), {})
