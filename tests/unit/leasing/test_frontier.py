"""The frontier gives the smallest current key, however the keys moved."""

from random import Random

import pytest

from proxy_operator.leasing.frontier import Frontier, Key


class Member:
    def __init__(self, name: int) -> None:
        self.name = name
        self.key: Key | None = None

    def set(self, value: int | None) -> None:
        self.key = None if value is None else (value, self.name, self)


def the_smallest(members: list[Member]) -> Key | None:
    return min((m.key for m in members if m.key is not None), default=None)


@pytest.mark.parametrize("seed", range(5))
def test_follows_every_move_when_only_falls_are_announced(seed):
    random = Random(seed)
    members = [Member(n) for n in range(20)]
    frontier = Frontier(-1, lambda m: m.key, members)
    for _ in range(2000):
        member = random.choice(members)
        old = member.key
        member.set(random.choice([None, *range(10)]))
        if member.key is not None and (old is None or member.key < old):
            frontier.lower(member, member.key)
        if random.random() < 0.3:
            assert frontier.first() == the_smallest(members)
    assert len(frontier) <= 2 * len(members) + 64


def test_a_discarded_member_is_gone_and_its_entries_do_not_pile_up():
    frontier: Frontier[Member] = Frontier(-1, lambda m: m.key)
    for n in range(1000):
        member = Member(n)
        frontier.lower(member, (n, n, member))
        frontier.discard(member)
        frontier.discard(member)
    assert frontier.first() is None
    assert len(frontier) <= 65
