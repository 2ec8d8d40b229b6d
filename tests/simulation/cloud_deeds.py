"""What the cloud does by itself, and what strangers do in it."""

import asyncio

from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL, instance_name
from proxy_operator.domain.proxy import Proxy
from tests.fakes.compute import strangers
from tests.fakes.compute.machine import Machine
from tests.simulation.plan import Happening, key_of_subject
from tests.simulation.troubles import TROUBLES, make_trouble
from tests.simulation.world import ZONES, Cluster, Universe


async def cloud_trouble(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    make_trouble(universe.cloud, TROUBLES, happening)


async def blackout(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """A right is lost, a zone does not answer, a quota is reached."""
    conduct, choice = universe.cloud.conduct, happening.choice
    if choice % 4 == 0:
        conduct.can_read = False
    elif choice % 4 == 1:
        conduct.can_change = False
    elif choice % 4 == 2:
        conduct.unreachable = {ZONES[choice % 2]}
    else:
        conduct.quota = 1
        conduct.quota_is_said_by = "insert" if happening.amount < 0.5 else "operation"
    asyncio.get_running_loop().call_later(60 + 1500 * happening.amount, lift, universe)


def lift(universe: Universe) -> None:
    """Let nothing be wrong with rights, zones and quotas."""
    conduct = universe.cloud.conduct
    conduct.can_read = conduct.can_change = True
    conduct.unreachable = set()
    conduct.quota = None
    for zone in conduct.zones:
        conduct.zones[zone] = None


def _one_of(cluster: Cluster, happening: Happening) -> Machine | None:
    machines = [
        m
        for m in cluster.universe.machines_of(cluster.cluster_id)
        if m.is_visible and m.status == "RUNNING"
    ]
    return machines[happening.choice % len(machines)] if machines else None


async def preempt(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    machine = _one_of(cluster, happening)
    if machine is not None:
        how = (strangers.preempt, strangers.stop, strangers.delete)[happening.choice % 3]
        how(universe.cloud, machine)


async def vanish(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    machine = _one_of(cluster, happening)
    if machine is not None:
        strangers.vanish(universe.cloud, machine)


async def address(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """An address changes, or is away for a while."""
    machine = _one_of(cluster, happening)
    if machine is None:
        return
    if happening.amount < 0.5:
        strangers.change_address(universe.cloud, machine)
        return
    strangers.lose_address(universe.cloud, machine)

    def give() -> None:
        if not machine.is_gone and machine.status == "RUNNING":
            strangers.change_address(universe.cloud, machine)

    asyncio.get_running_loop().call_later(600 * happening.amount, give)


async def relaunch(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """The cloud makes an instance anew that was deleted."""
    universe.cloud.now()
    ended = [
        life
        for life in universe.cloud.ledger.lives[-20:]
        if life.gone_at is not None and life.labels.get(CLUSTER_LABEL)
    ]
    if ended:
        strangers.make_again(universe.cloud, ended[happening.choice % len(ended)])


async def squat(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody has an instance that looks like ours: our UID, another cluster, another name."""
    found = await cluster.store.get(Proxy, key_of_subject(happening))
    name = f"foreign-{int(happening.at)}"
    _make_foreign(universe, ZONES[0], name, found.metadata.uid)


async def usurp(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody else has an instance with the very name of ours, where ours is not at the moment."""
    found = await cluster.store.get(Proxy, key_of_subject(happening))
    zone, uid = ZONES[happening.choice % 2], found.metadata.uid
    machine = _make_foreign(universe, zone, instance_name(uid), uid)
    span = 60 + 1800 * happening.amount
    asyncio.get_running_loop().call_later(span, withdraw_usurper, universe, machine)


def _make_foreign(universe: Universe, zone: str, name: str, uid: str) -> Machine:
    labels = {UID_LABEL: uid, CLUSTER_LABEL: "somebody-else"}
    machine = strangers.make(universe.cloud, zone, name, labels)
    universe.foreign.append(machine)
    return machine


def withdraw_usurper(universe: Universe, machine: Machine) -> None:
    """Let its owner take a foreign instance away."""
    if machine in universe.foreign:
        universe.foreign.remove(machine)
        strangers.vanish(universe.cloud, machine)


async def puzzle(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """An instance has a status for a while that nobody has heard of."""
    machine = _one_of(cluster, happening)
    if machine is None:
        return
    strangers.set_status(universe.cloud, machine, "CONTEMPLATING")

    def end() -> None:
        if machine.status == "CONTEMPLATING":
            strangers.set_status(universe.cloud, machine, "RUNNING")

    asyncio.get_running_loop().call_later(600 * happening.amount, end)
