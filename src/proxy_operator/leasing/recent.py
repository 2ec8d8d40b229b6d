"""Bounds what is kept only for speed: the least recently used goes first.

The rule: whatever is dropped here can be built again from live state, and is, when asked for.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable


class Recent:
    """Things with a cost, in order of use: at most `most` of them, and `budget` of cost."""

    def __init__(self, *, most: int, budget: int) -> None:
        self._most = most
        self.budget = budget
        self._things: OrderedDict[Hashable, tuple[int, Callable[[], object], str]] = OrderedDict()
        self._tagged: dict[str, set[Hashable]] = {}
        self._cost = 0

    def __len__(self) -> int:
        return len(self._things)

    def add(self, key: Hashable, cost: int, drop: Callable[[], object], *, tag: str = "") -> None:
        """Keep a thing; `drop` is called when it has to go. The newest always stays."""
        self._things[key] = (cost, drop, tag)
        self._tagged.setdefault(tag, set()).add(key)
        self._cost += cost
        while len(self._things) > 1 and (
            len(self._things) > self._most or self._cost > self.budget
        ):
            self.drop(next(iter(self._things)))

    def touch(self, key: Hashable) -> None:
        """Note a use."""
        self._things.move_to_end(key)

    def drop(self, key: Hashable) -> None:
        """Let a thing go; unknown ones are ignored."""
        if key not in self._things:
            return
        cost, drop, tag = self._things.pop(key)
        self._cost -= cost
        tagged = self._tagged[tag]
        tagged.discard(key)
        if not tagged:
            del self._tagged[tag]
        drop()

    def drop_tagged(self, tag: str) -> None:
        """Let everything of that tag go."""
        for key in [*self._tagged.get(tag, ())]:
            self.drop(key)
