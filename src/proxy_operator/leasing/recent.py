"""Bounds what is kept only for speed: what was not used for a while goes first.

The rule: whatever is dropped here can be built again from live state, and is, when asked for.
"""

from collections.abc import Callable, Hashable


class Kept:
    """A thing that is kept. Whoever uses it sets `is_used`."""

    __slots__ = ("cost", "drop", "is_used", "tag")

    def __init__(self, cost: int, drop: Callable[[], object], tag: str) -> None:
        self.cost = cost
        self.drop = drop
        self.is_used = False
        self.tag = tag

    def spare(self) -> bool:
        """Tell whether it was used since this was last asked."""
        was_used, self.is_used = self.is_used, False
        return was_used


class Recent:
    """Things with a cost: at most `most` of them, and `budget` of cost.

    Uses are not put in order, for that would cost each of them more than a mark: what was used
    since the last look goes to the end of the queue once more (second chance).
    """

    def __init__(self, *, most: int, budget: int) -> None:
        self._most = most
        self.budget = budget
        self._things: dict[Hashable, Kept] = {}
        self._tagged: dict[str, set[Hashable]] = {}
        self._cost = 0

    def __len__(self) -> int:
        return len(self._things)

    def add(self, key: Hashable, cost: int, drop: Callable[[], object], *, tag: str = "") -> Kept:
        """Keep a thing; `drop` is called when it has to go. The newest always stays."""
        while self._things and (len(self._things) >= self._most or self._cost + cost > self.budget):
            self._drop_idlest()
        kept = self._things[key] = Kept(cost, drop, tag)
        self._tagged.setdefault(tag, set()).add(key)
        self._cost += cost
        return kept

    def drop(self, key: Hashable) -> None:
        """Let a thing go; unknown ones are ignored."""
        kept = self._things.pop(key, None)
        if kept is None:
            return
        self._cost -= kept.cost
        tagged = self._tagged[kept.tag]
        tagged.discard(key)
        if not tagged:
            del self._tagged[kept.tag]
        kept.drop()

    def drop_tagged(self, tag: str) -> None:
        """Let everything of that tag go."""
        for key in [*self._tagged.get(tag, ())]:
            self.drop(key)

    def _drop_idlest(self) -> None:
        key = next(iter(self._things))
        while self._things[key].spare():
            self._things[key] = self._things.pop(key)
            key = next(iter(self._things))
        self.drop(key)
