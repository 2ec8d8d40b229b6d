"""Finds the best record, and the counts, for any selector without looking at the fleet.

Records fall into shapes, shapes into views; a view is made when its selector is first asked for,
from the shapes that carry the rarest of its attributes. What is kept for selectors and targets is
bounded: see `Recent`.
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import count
from typing import Final, TypeVar

from proxy_operator.leasing.recent import Recent
from proxy_operator.leasing.shape import Record, Shape, View

_MOST_VIEWS: Final = 128
_LEAST_BUDGET: Final = 1 << 19
_BUDGET_PER_RECORD: Final = 16

ShapeKey = tuple[str, frozenset[tuple[str, str]]]
ViewKey = tuple[str | None, frozenset[tuple[str, str]]]
_K = TypeVar("_K")


class Index:
    """All records, by shape and by view."""

    def __init__(self) -> None:
        self._shapes: dict[ShapeKey, Shape] = {}
        self._by_attribute: defaultdict[tuple[str, str], set[Shape]] = defaultdict(set)
        self._by_namespace: defaultdict[str, set[Shape]] = defaultdict(set)
        self._views: dict[ViewKey, View] = {}
        self._recent_views = Recent(most=_MOST_VIEWS, budget=_LEAST_BUDGET)
        self._recent_lanes = Recent(most=_LEAST_BUDGET, budget=_LEAST_BUDGET)
        self._serials = count(1)
        self._size = 0

    def add(self, record: Record) -> None:
        """Place a record by its candidate's namespace and attributes."""
        self._resize(1)
        candidate = record.candidate
        key = (candidate.namespace, frozenset(candidate.attributes.items()))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = Shape(
                key[0], dict(candidate.attributes), self._recent_lanes
            )
            self._enter(shape)
        shape.admit(record, next(self._serials))

    def remove(self, record: Record) -> None:
        """Take a record out."""
        shape = record.shape
        if shape is None:
            return
        self._resize(-1)
        shape.expel(record)
        if not shape.members:
            self._leave(shape)

    def refresh(self, record: Record, *, is_worse: bool = False) -> None:
        """Note that the record changed in anything but namespace and attributes."""
        if record.shape is not None:
            record.shape.refresh(record, is_worse=is_worse)

    def view(self, namespace: str | None, selector: Mapping[str, str]) -> View | None:
        """Return all that match, None when nothing does (nothing is kept then)."""
        key = (namespace, frozenset(selector.items()))
        view = self._views.get(key)
        if view is not None:
            view.kept.is_used = True
            return view
        shapes = [s for s in self._nearest(namespace, selector) if s.matches(namespace, selector)]
        if not shapes:
            return None
        view = self._views[key] = View(namespace, dict(selector), self._recent_lanes, shapes)
        view.kept = self._recent_views.add(
            key, len(shapes), lambda: self._views.pop(key).dissolve()
        )
        return view

    def quiet(self, target: str) -> None:
        """Note that no cooldown for this target is left."""
        self._recent_lanes.drop_tagged(target)

    def _nearest(self, namespace: str | None, selector: Mapping[str, str]) -> set[Shape]:
        """Return a small set of shapes that holds every match."""
        sets = [self._by_attribute.get(item, set()) for item in selector.items()]
        if namespace is not None:
            sets.append(self._by_namespace.get(namespace, set()))
        return min(sets, key=len) if sets else set(self._shapes.values())

    def _enter(self, shape: Shape) -> None:
        self._by_namespace[shape.namespace].add(shape)
        for item in shape.attributes.items():
            self._by_attribute[item].add(shape)
        for view in self._views.values():
            if shape.matches(view.namespace, view.selector):
                view.admit(shape)

    def _leave(self, shape: Shape) -> None:
        del self._shapes[shape.namespace, frozenset(shape.attributes.items())]
        shape.drop_lanes()
        _discard(self._by_namespace, shape.namespace, shape)
        for item in shape.attributes.items():
            _discard(self._by_attribute, item, shape)
        for view in [*shape.views]:
            view.forget(shape)
            if not view.members:
                self._recent_views.drop((view.namespace, frozenset(view.selector.items())))
        shape.views.clear()

    def _resize(self, by: int) -> None:
        self._size += by
        budget = max(_LEAST_BUDGET, _BUDGET_PER_RECORD * self._size)
        self._recent_views.budget = self._recent_lanes.budget = budget


def _discard(sets: dict[_K, set[Shape]], key: _K, shape: Shape) -> None:
    sets[key].discard(shape)
    if not sets[key]:
        del sets[key]
