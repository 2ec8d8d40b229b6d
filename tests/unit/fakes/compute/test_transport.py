"""Carrying calls on virtual time: slow ones, lost ones, and clients that leave early."""

import asyncio
from datetime import timedelta
from random import Random

import pytest

from proxy_operator.runtime.clock import LoopClock
from tests.builders import EPOCH
from tests.fakes.compute.faults import Delay, Faults, LoseReply, LoseRequest, Refuse, Target
from tests.fakes.compute.messages import ReplyLostError
from tests.fakes.compute.refusals import unavailable
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT, a_body
from tests.fakes.compute.transport import InProcessTransport
from tests.fakes.compute.world import World
from tests.unit.fakes.compute.builders import ZONE, a_request_id

virtual = pytest.mark.looptime(start=0, noop_cycles=3)
INSTANCES = f"https://compute.googleapis.com/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances"


@pytest.fixture
def world():
    return World(LoopClock(EPOCH))


@pytest.fixture
def transport(world):
    return InProcessTransport(Service(world))


def insert(transport, name="proxy-a", request_id=None):
    query = {"requestId": request_id or a_request_id()}
    return transport.request("POST", INSTANCES, query=query, body=a_body(ZONE, name))


@virtual
async def test_an_instance_comes_and_goes_on_the_time_of_the_loop(world, transport):
    assert (await insert(transport)).status == 200
    await asyncio.sleep(8)
    answer = await transport.request("get", f"{INSTANCES}/proxy-a?prettyPrint=false")
    assert answer.json()["status"] == "RUNNING"
    await transport.request("DELETE", f"{INSTANCES}/proxy-a")
    await asyncio.sleep(3600)
    assert world.machines() == []
    assert world.ledger.instance_seconds(world.now()) == pytest.approx(17.0)


@virtual
async def test_a_lost_reply_is_lost_after_the_deed(world, transport):
    world.faults.add(LoseReply(), "insert", times=1)
    with pytest.raises(ReplyLostError):
        await insert(transport, request_id=a_request_id(1))
    assert (await insert(transport, request_id=a_request_id(1))).status == 200
    assert len(world.ledger.inserts) == 1


@virtual
async def test_a_lost_request_does_nothing(world, transport):
    world.faults.add(LoseRequest(), "insert", times=1)
    with pytest.raises(ReplyLostError):
        await insert(transport)
    assert world.ledger.inserts == []
    assert world.ledger.calls == []


@virtual
async def test_an_error_may_hide_a_deed_that_was_done(world, transport):
    world.faults.add(Refuse(unavailable(), is_done=True), "insert", times=1)
    assert (await insert(transport)).status == 503
    assert len(world.ledger.inserts) == 1


@virtual
async def test_slow_answers_add_up(world, transport):
    slow = Delay(before=timedelta(seconds=3), after=timedelta(seconds=4))
    world.faults.add(slow)
    world.faults.add(slow, "insert")
    await insert(transport)
    assert asyncio.get_running_loop().time() == pytest.approx(14.0)
    assert world.ledger.inserts[0].at == pytest.approx(6.0)
    assert len(world.ledger.calls) == 1


@virtual
async def test_a_client_that_leaves_does_not_take_its_request_back(world, transport):
    world.faults.add(Delay(before=timedelta(seconds=15)), "insert", times=1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(10):
            await insert(transport)
    assert world.machines() == []
    await asyncio.sleep(1000)
    [machine] = world.machines()
    assert machine.status == "RUNNING"
    assert [one.at for one in world.ledger.inserts] == [15.0]
    assert [life.born_at for life in world.ledger.lives] == [16.0]


def hits(faults, count, *target):
    return sum(faults.strike(Target(*target)).fate is not None for _ in range(count))


def test_faults_hit_what_they_are_about_as_often_as_they_say():
    faults = Faults()
    faults.add(LoseReply(), "get", times=2, zone=ZONE)
    assert hits(faults, 5, "insert", PROJECT, ZONE) == 0
    assert hits(faults, 5, "get", PROJECT, "us-central1-a") == 0
    assert hits(faults, 5, "get", PROJECT, ZONE, "proxy-a") == 2
    assert faults.rules == []
    rule = faults.add(LoseRequest(), name="proxy-a")
    assert hits(faults, 5, "delete", PROJECT, ZONE, "proxy-a") == 5
    faults.remove(rule)
    faults.remove(rule)
    assert hits(faults, 5, "delete", PROJECT, ZONE, "proxy-a") == 0


def test_chance_is_repeated_by_its_seed():
    def pattern(seed):
        faults = Faults(Random(seed))
        faults.add(LoseReply(), chance=0.3)
        return [hits(faults, 1, "get") for _ in range(200)]

    assert pattern(1) == pattern(1) != pattern(2)
    assert 30 < sum(pattern(1)) < 90


def test_the_first_rule_decides():
    faults = Faults()
    faults.add(LoseRequest(), times=1)
    faults.add(LoseReply(), times=1)
    assert faults.strike(Target("get")).fate == LoseRequest()
    assert faults.rules == [], "both were hit, and are used up"
