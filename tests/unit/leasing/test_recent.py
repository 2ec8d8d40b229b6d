"""Recent keeps no more than it may, and lets the unused go first."""

from proxy_operator.leasing.recent import Kept, Recent


class Shelf:
    """Things that tell when they were dropped."""

    def __init__(self, *, most: int, budget: int) -> None:
        self.recent = Recent(most=most, budget=budget)
        self.things: dict[str, Kept] = {}

    def put(self, name: str, cost: int = 1, tag: str = "") -> None:
        self.things[name] = self.recent.add(name, cost, lambda: self.things.pop(name), tag=tag)


def test_the_unused_go_first_and_a_use_counts_once():
    shelf = Shelf(most=3, budget=100)
    for name in "abc":
        shelf.put(name)
    shelf.things["a"].is_used = True
    shelf.put("d")
    assert [*shelf.things] == ["a", "c", "d"]
    shelf.put("e")
    assert [*shelf.things] == ["a", "d", "e"]
    shelf.put("f")
    assert [*shelf.things] == ["d", "e", "f"]


def test_when_all_were_used_the_oldest_goes():
    shelf = Shelf(most=3, budget=100)
    for name in "abc":
        shelf.put(name)
        shelf.things[name].is_used = True
    shelf.put("d")
    assert [*shelf.things] == ["b", "c", "d"]


def test_costs_stay_within_the_budget_but_the_newest_stays():
    shelf = Shelf(most=10, budget=10)
    shelf.put("a", 6)
    shelf.put("b", 4)
    shelf.put("c", 5)
    assert [*shelf.things] == ["b", "c"]
    shelf.put("huge", 50)
    assert [*shelf.things] == ["huge"]
    shelf.put("d", 1)
    assert [*shelf.things] == ["d"]


def test_what_was_dropped_by_name_or_tag_is_paid_back():
    shelf = Shelf(most=10, budget=3)
    shelf.put("a", tag="shop")
    shelf.put("b", tag="news")
    shelf.put("c", tag="shop")
    shelf.recent.drop("unknown")
    shelf.recent.drop("b")
    shelf.recent.drop_tagged("shop")
    assert not shelf.things
    assert not len(shelf.recent)
    for name in "def":
        shelf.put(name)
    assert [*shelf.things] == ["d", "e", "f"]
