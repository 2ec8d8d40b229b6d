"""One change in a home's history, and what a watcher with a selector sees of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy_operator.runtime.objects import Object, WatchEvent, WatchEventType


class Change(NamedTuple):
    """One write, in the order of resource versions."""

    resource_version: int
    type: WatchEventType
    object: Object
    """The object after the write; after a deletion, its last state."""
    previous: Object | None
    """The object before, at this version, when its labels were others; else None."""


class Selector(NamedTuple):
    """What a list or a watch asks for."""

    kind: type[Any]
    namespace: str | None
    labels: Mapping[str, str]

    def matches(self, obj: Object) -> bool:
        """Tell whether the object is asked for."""
        meta = obj.metadata
        return (
            isinstance(obj, self.kind)
            and self.namespace in {None, meta.namespace}
            and all(meta.labels.get(key) == value for key, value in self.labels.items())
        )

    def event_of(self, change: Change) -> WatchEvent[Any] | None:
        """Return what the watcher is told, or None when the change does not concern it.

        A change of labels may make the object appear or disappear for this watcher; the event
        of a disappearance shows the last state that matched.
        """
        before = change.previous or change.object
        was_seen = change.type is not WatchEventType.ADDED and self.matches(before)
        is_seen = change.type is not WatchEventType.DELETED and self.matches(change.object)
        version = str(change.resource_version)
        if was_seen and is_seen:
            return WatchEvent(WatchEventType.MODIFIED, change.object, version)
        if is_seen:
            return WatchEvent(WatchEventType.ADDED, change.object, version)
        if was_seen:
            return WatchEvent(WatchEventType.DELETED, before, version)
        return None
