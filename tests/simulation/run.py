"""One seed from its first happening to the verdict."""

import asyncio
import random
import uuid
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from unittest.mock import patch

from tests.fakes.compute import strangers
from tests.fakes.compute.faults import Refuse
from tests.fakes.compute.refusals import pool_exhausted
from tests.simulation.cloud_deeds import lift
from tests.simulation.deeds import mend, play
from tests.simulation.invariants import MOST_INSERTS, MOST_LISTS_PER_HOUR, judge_settled
from tests.simulation.plan import HOUR, Plan, plan_of
from tests.simulation.virtual_loop import VirtualLoop
from tests.simulation.world import Universe


@dataclass(frozen=True)
class Verdict:
    """What a seed came to."""

    seed: int
    wrong: tuple[str, ...]
    lives: int
    """Instances that ever existed."""
    calls: int
    """Requests that reached the cloud."""
    simulated: float
    """Virtual seconds."""


def simulate(seed: int) -> Verdict:
    """Play the plan of a seed and judge it. The same seed gives the same verdict."""
    plan, ids = plan_of(seed), Random(f"ids of {seed}")
    state = random.getstate()
    with ExitStack() as stack:
        stack.callback(random.setstate, state)
        random.seed(f"jitter of {seed}")
        stack.enter_context(
            patch.object(uuid, "uuid4", lambda: uuid.UUID(int=ids.getrandbits(128), version=4))
        )
        runner = stack.enter_context(asyncio.Runner(loop_factory=VirtualLoop))
        return runner.run(_simulate(plan))


async def _simulate(plan: Plan) -> Verdict:
    universe = Universe(plan)
    async with universe.group as group:
        lives = [group.create_task(cluster.live()) for cluster in universe.clusters]
        await play(universe, plan)
        _calm(universe)
        await mend(universe)
        wrong = await _endure_drought(universe, plan)
        wrong += await _settle(universe, plan)
        wrong += await judge_settled(universe)
        wrong += await _restart(universe, plan)
        for task in lives:
            task.cancel()
        for cluster in universe.clusters:
            cluster.kill()
    ledger, now = universe.cloud.ledger, asyncio.get_running_loop().time()
    return Verdict(plan.seed, tuple(wrong), len(ledger.lives), len(ledger.calls), now)


def _calm(universe: Universe) -> None:
    """Let nothing be wrong any more."""
    lift(universe)
    universe.cloud.faults.clear()
    for cluster in universe.clusters:
        cluster.line.loss = 0.0
        cluster.jump(cluster.clock.skew * 0)


async def _endure_drought(universe: Universe, plan: Plan) -> list[str]:
    """Let every instance vanish and no zone have room; return who tried too often."""
    cloud, start = universe.cloud, universe.cloud.now()
    for machine in [*cloud.machines()]:
        if machine not in universe.foreign:
            strangers.vanish(cloud, machine)
    if plan.seed % 2:
        cloud.faults.add(Refuse(pool_exhausted()), "insert")
    else:
        cloud.conduct.zones = dict.fromkeys(cloud.conduct.zones, 0)
    await asyncio.sleep(plan.drought)
    end = cloud.now()
    cloud.faults.clear()
    lift(universe)
    return [
        f"{name} was inserted {most} times within an hour of the drought"
        for name, moments in _tries(universe, start, end).items()
        if (most := _most_within(moments, HOUR)) > MOST_INSERTS
    ]


def _tries(universe: Universe, start: float, end: float) -> dict[str, list[float]]:
    """Return when each name was inserted, or refused for want of room.

    What is sent again with its request id is one try, and a name that is taken is none.
    """
    ledger = universe.cloud.ledger
    found: dict[str, list[float]] = {}
    first = {(one.name, one.request_id): one.at for one in reversed(ledger.inserts)}
    for (name, _), at in first.items():
        found.setdefault(name, []).append(at)
    for call in ledger.calls:
        if call.method == "insert" and call.status == 503:
            found.setdefault(call.name, []).append(call.at)
    return {name: [at for at in sorted(all_) if start <= at <= end] for name, all_ in found.items()}


def _most_within(moments: list[float], window: float) -> int:
    return max((sum(0 <= at - m < window for at in moments) for m in moments), default=0)


async def _settle(universe: Universe, plan: Plan) -> list[str]:
    """Wait; return what was asked too often in the last hour of it."""
    await asyncio.sleep(plan.quiet - HOUR)
    since = universe.cloud.now()
    await asyncio.sleep(HOUR)
    asked = universe.cloud.ledger.count("aggregatedList", since)
    most = MOST_LISTS_PER_HOUR * len(universe.clusters)
    return [f"{asked} lists in an hour"] if asked > most else []


async def _restart(universe: Universe, plan: Plan) -> list[str]:
    """Start everybody anew in the settled fleet; return what that changed."""
    clusters, ledger = universe.clusters, universe.cloud.ledger
    versions, since = [c.store.version for c in clusters], len(ledger.calls)
    for cluster in clusters:
        cluster.pause = 1.0
        cluster.kill()
    await asyncio.sleep(plan.watch)
    wrong = [
        f"a settled restart changed the store of {cluster.cluster_id}"
        for cluster, version in zip(clusters, versions, strict=True)
        if cluster.store.version != version
    ]
    changed = Counter(c.method for c in ledger.calls[since:] if c.method in {"insert", "delete"})
    return wrong + [f"a settled restart sent {n} {method}" for method, n in changed.items()]
