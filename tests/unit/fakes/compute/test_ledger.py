"""The books are right whatever happens: billed is what exists, and no request id has two."""

import contextlib
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from tests.fakes.compute import strangers
from tests.fakes.compute.faults import FailOperation
from tests.fakes.compute.ledger import Insert, Ledger
from tests.fakes.compute.messages import RefusedError
from tests.fakes.compute.strangers import PROJECT
from tests.unit.fakes.compute.builders import ZONE, Cloud, a_request_id, an_insert, names_in

NAMES = st.sampled_from(["proxy-a", "proxy-b", "proxy-c"])


class Books(RuleBasedStateMachine):
    """Anything may happen to three names in one zone; time passes in between.

    The bill is checked against what a reader saw: an observer looks every second.
    """

    request_ids = Bundle("request_ids")

    def __init__(self):
        super().__init__()
        self.cloud = Cloud()
        self.world = self.cloud.world
        self.seen_seconds: Counter[str] = Counter()
        self.operations = {}

    @rule(target=request_ids)
    def a_new_request_id(self):
        return a_request_id()

    @rule(name=NAMES, request_id=request_ids)
    def insert(self, name, request_id):
        self._note(request_id, self.cloud.service.handle(an_insert(name, ZONE, request_id)))

    @rule(name=NAMES, request_id=request_ids, seconds=st.integers(0, 12), is_seen=st.booleans())
    def insert_that_fails(self, name, request_id, seconds, is_seen):
        doom = FailOperation("QUOTA_EXCEEDED", timedelta(seconds=seconds), is_seen=is_seen)
        mark = self.world.faults.add(doom, times=1)
        self._note(request_id, self.cloud.service.handle(an_insert(name, ZONE, request_id)))
        self.world.faults.remove(mark)

    @rule(name=NAMES, request_id=consumes(request_ids))
    def delete(self, name, request_id):
        self._note(request_id, self.cloud.delete(name, request_id=request_id))

    @rule(room=st.sampled_from([None, 0, 1, 2]))
    def room_changes(self, room):
        self.world.conduct.zones[ZONE] = room

    @rule(
        name=NAMES,
        deed=st.sampled_from(
            [strangers.vanish, strangers.preempt, strangers.stop, strangers.lose_address]
        ),
    )
    def something_happens_to(self, name, deed):
        for machine in self.world.machines():
            if machine.name == name:
                deed(self.world, machine)

    @rule(name=NAMES)
    def a_stranger_makes(self, name):
        with contextlib.suppress(RefusedError):  # the name is taken
            strangers.make(self.world, ZONE, name)

    @rule(seconds=st.integers(1, 15))
    def time_passes(self, seconds):
        for _ in range(seconds):
            self.seen_seconds.update(machine.id for machine in self.world.machines())
            self.cloud.passes(1)

    @invariant()
    def a_bill_is_for_what_exists(self):
        now = self.world.now()
        for life in self.world.ledger.lives:
            assert life.seconds(now) == self.seen_seconds[life.instance_id], life
        alive = {life.instance_id for life in self.world.ledger.alive()}
        assert alive == {machine.id for machine in self.world.machines()}
        assert sum(self.seen_seconds.values()) == self.world.ledger.instance_seconds(now)

    @invariant()
    def a_request_id_has_one_operation_and_at_most_one_life(self):
        accepted = Counter(one.request_id for one in self.world.ledger.inserts if one.request_id)
        born = Counter(life.request_id for life in self.world.ledger.lives if life.request_id)
        assert set(accepted.values()) | set(born.values()) <= {1}
        assert born.keys() <= accepted.keys()

    @invariant()
    def a_list_shows_what_exists(self):
        assert names_in(self.cloud.list()) == [one.name for one in self.world.machines(PROJECT)]

    def _note(self, request_id, answer):
        """One request id is answered one operation, for ever."""
        if answer.status == 200:
            name = answer.json()["name"]
            assert self.operations.setdefault(request_id, name) == name


Books.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
TestBooks = Books.TestCase


@pytest.mark.parametrize(
    ("moments", "most"), [([], 0), ([0], 1), ([0, 10, 3599, 3600], 3), ([0, 3600, 7199], 2)]
)
def test_the_most_inserts_within_an_hour(moments, most):
    ledger = Ledger()
    for number, at in enumerate(moments):
        ledger.inserts.append(Insert(at, str(number), "1", PROJECT, ZONE, "proxy-a", {}))
    assert ledger.most_inserts("proxy-a") == most
    assert ledger.most_inserts("proxy-b") == 0
