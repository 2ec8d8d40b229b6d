import logging
from typing import Any

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import ObjectKey
from proxy_operator.runtime.store import Store, StoreEvent
from tests.unit.runtime.script import an_object

A = ObjectKey("default", "a")


def by_label(obj: Proxy) -> list[str]:
    return obj.metadata.labels.get("for", "").split()


def indexed(store: Store[Proxy], value: str) -> set[str]:
    return {obj.metadata.name for obj in store.by_index("for", value)}


def test_objects_are_found_by_key_and_namespace():
    store: Store[Proxy] = Store()
    one, other = an_object("a"), an_object("a", namespace="other")
    store.put(one)
    store.put(other)
    assert len(store) == 2
    assert store.get(A) is one
    assert store.get(ObjectKey("default", "b")) is None
    assert list(store.list("other")) == [other]
    assert list(store.list()) == [one, other]


def test_listing_is_a_copy():
    store: Store[Proxy] = Store()
    store.put(an_object("a"))
    for obj in store.list():
        store.remove(ObjectKey(obj.metadata.namespace, obj.metadata.name))
    assert len(store) == 0


def test_index_follows_every_change():
    store = Store({"for": by_label})
    store.put(an_object("a", labels={"for": "x y"}))
    store.put(an_object("b", labels={"for": "y"}))
    assert (indexed(store, "x"), indexed(store, "y")) == ({"a"}, {"a", "b"})
    store.put(an_object("a", labels={"for": "z"}))
    assert (indexed(store, "x"), indexed(store, "y"), indexed(store, "z")) == (set(), {"b"}, {"a"})
    store.remove(A)
    assert indexed(store, "z") == set()
    assert set(store._indexes["for"]) == {"y"}


def test_handlers_see_old_and_new_after_the_store_changed():
    store: Store[Proxy] = Store()
    seen: list[Any] = []

    def handle(event: StoreEvent[Proxy]) -> None:
        assert store.get(A) is event.new
        seen.append(event)

    store.add_handler(handle)
    first, second = an_object("a", 1), an_object("a", 2)
    store.put(first)
    store.put(second, is_echo=True)
    store.remove(A)
    store.remove(A)
    assert seen == [(None, first, False), (first, second, True), (second, None, False)]


def test_late_handler_learns_of_everything_stored_exactly_once():
    store: Store[Proxy] = Store()
    late: list[str] = []

    def subscribe(event: StoreEvent[Proxy]) -> None:
        if event.new is not None and event.new.metadata.name == "b":
            store.add_handler(lambda e: late.append(e.new.metadata.name if e.new else "-"))

    store.add_handler(subscribe)
    store.put(an_object("a"))
    store.put(an_object("b"))
    assert late == ["a", "b"]
    store.put(an_object("c"))
    assert late == ["a", "b", "c"]


def test_failing_handler_is_logged_and_the_others_still_run(caplog):
    store: Store[Proxy] = Store()
    seen: list[Any] = []
    store.add_handler(lambda _: 1 / 0)  # type: ignore[arg-type] # never returns
    store.add_handler(seen.append)
    with caplog.at_level(logging.ERROR):
        store.put(an_object("a"))
    assert len(seen) == 1
    assert store.get(A) is not None
    assert [record.message for record in caplog.records] == ["a handler failed on an object change"]
