"""What each kind of happening does; a deed for which nothing is there does nothing."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import msgspec

from proxy_operator.domain.names import instance_name
from proxy_operator.domain.proxy import Phase, Proxy, SecretRef
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.errors import ObjectError
from proxy_operator.runtime.objects import ObjectKey
from tests.builders import a_manifest, a_secret
from tests.fakes.compute import strangers
from tests.fakes.compute.machine import Machine
from tests.fakes.compute.messages import RefusedError
from tests.gcp_worlds import a_gcp_proxy
from tests.simulation.plan import Happening, Plan
from tests.simulation.troubles import TROUBLES, make_trouble
from tests.simulation.world import ZONES, Cluster, Universe

Deed = Callable[[Universe, Cluster, Happening], Awaitable[None]]
SECRET: Final = "users"
NO_ZONE: Final = "mars-north1-a"


async def play(universe: Universe, plan: Plan) -> None:
    """Do all happenings of a plan, each at its moment."""
    loop = asyncio.get_running_loop()
    for cluster in universe.clusters:
        await rotate(universe, cluster, Happening(0, "rotate", 0, 0, 0, 0))
    for happening in plan.happenings:
        await asyncio.sleep(max(happening.at - loop.time(), 0))
        cluster = universe.clusters[happening.cluster]
        subject = happening.subject % plan.proxies[happening.cluster]
        with contextlib.suppress(ObjectError, RefusedError):
            await DEEDS[happening.kind](universe, cluster, happening._replace(subject=subject))


def _key(happening: Happening) -> ObjectKey:
    return ObjectKey("default", f"p{happening.subject}")


async def _apply(cluster: Cluster, happening: Happening, *, port: int, zone: str) -> None:
    """Apply a manifest; odd subjects use the Secret, every third is spot."""
    others = tuple(z for z in ZONES if z != zone)
    proxy = a_gcp_proxy(
        _key(happening).name,
        zone=zone,
        fallback_zones=others,
        spot=happening.subject % 3 == 0,
    )
    spec = _replaced(proxy, port=port, secret=happening.subject % 2 == 1)
    await cluster.store.apply(a_manifest(spec))


def _replaced(proxy: Proxy, *, port: int, secret: bool) -> Proxy:
    ref = SecretRef(name=SECRET) if secret else None
    spec = msgspec.structs.replace(proxy.spec, port=port, credentials_secret_ref=ref)
    return Proxy(metadata=proxy.metadata, spec=spec, status=proxy.status)


async def create(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    await _apply(cluster, happening, port=3128, zone=ZONES[0])


async def delete(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    await cluster.store.delete(Proxy, _key(happening))


async def edit(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    found = await cluster.store.get(Proxy, _key(happening))
    zone = found.spec.gcp.zone if found.spec.gcp else None
    await _apply(cluster, happening, port=3000 + happening.choice % 50, zone=zone or ZONES[0])


async def move(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    found = await cluster.store.get(Proxy, _key(happening))
    zone = found.spec.gcp.zone if found.spec.gcp else None
    other = ZONES[1] if zone == ZONES[0] else ZONES[0]
    await _apply(cluster, happening, port=found.spec.port or 3128, zone=other)


async def rotate(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    password = f"password-{happening.choice % 3}".encode()
    await cluster.store.apply(a_manifest(a_secret(SECRET, username=b"crawler", password=password)))


async def withdraw(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """The Secret is deleted, and comes back, perhaps with another content, after a while."""
    await cluster.store.delete(Secret, ObjectKey("default", SECRET))

    def restore() -> None:
        universe.group.create_task(rotate(universe, cluster, happening))

    asyncio.get_running_loop().call_later(900 * happening.amount, restore)


async def misspell(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody names a zone that does not exist."""
    found = await cluster.store.get(Proxy, _key(happening))
    await _apply(cluster, happening, port=found.spec.port or 3128, zone=NO_ZONE)


async def kill(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    cluster.pause = 1 + 60 * happening.amount
    cluster.kill()


async def die_at_call(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    cluster.pause = 1.0
    cluster.process.gate.die_at(happening.choice % 12, after=happening.amount < 0.5)


async def hand_over(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Another process leads; the old one has not noticed yet, or hangs on."""
    old = cluster.process
    cluster.pause = 1.0
    old.fence.is_open = False
    old.superseded.set()
    asyncio.get_running_loop().call_later(2 + 15 * happening.amount, old.gate.cut.set)


async def jump(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    cluster.jump(timedelta(minutes=60 * (happening.amount - 0.5)))
    span = 60 + happening.choice % 1800
    asyncio.get_running_loop().call_later(span, cluster.jump, timedelta())


async def store_trouble(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    cluster.line.loss = 0.1 + 0.6 * happening.amount

    def end() -> None:
        cluster.line.loss = 0.0

    asyncio.get_running_loop().call_later(30 + happening.choice % 600, end)


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
        if life.gone_at is not None and life.labels.get("proxy-operator-cluster")
    ]
    if ended:
        strangers.make_again(universe.cloud, ended[happening.choice % len(ended)])


async def squat(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody has an instance that looks like ours: our UID, another cluster, another name."""
    found = await cluster.store.get(Proxy, _key(happening))
    labels = {
        "proxy-operator-uid": found.metadata.uid,
        "proxy-operator-cluster": "somebody-else",
    }
    name = f"foreign-{len(universe.foreign)}"
    universe.foreign.append(strangers.make(universe.cloud, ZONES[0], name, labels))


async def usurp(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody else has an instance with the very name of ours, where ours is not at the moment."""
    found = await cluster.store.get(Proxy, _key(happening))
    zone, uid = ZONES[happening.choice % 2], found.metadata.uid
    labels = {"proxy-operator-uid": uid, "proxy-operator-cluster": "somebody-else"}
    machine = strangers.make(universe.cloud, zone, instance_name(uid), labels)
    universe.foreign.append(machine)
    span = 60 + 1800 * happening.amount
    asyncio.get_running_loop().call_later(span, withdraw_usurper, universe, machine)


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


async def mend(universe: Universe) -> None:
    """Do what only people can: correct a misspelt zone, take a usurper away and say so."""
    names = {instance_name(p.metadata.uid) for c in universe.clusters for p in c.proxies()}
    for machine in [m for m in universe.foreign if m.name in names]:
        withdraw_usurper(universe, machine)
    for number, cluster in enumerate(universe.clusters):
        await rotate(universe, cluster, Happening(0, "rotate", number, 0, 0, 0))
        for proxy in cluster.proxies():
            zone = proxy.spec.gcp.zone if proxy.spec.gcp else None
            is_latched = proxy.status.phase is Phase.FAILED
            if proxy.metadata.is_deleting or not (is_latched or zone == NO_ZONE):
                continue
            subject = int(proxy.metadata.name.removeprefix("p"))
            happening = Happening(0, "edit", number, subject, 0, 0)
            await _apply(cluster, happening, port=5000, zone=ZONES[0])


DEEDS: Final[dict[str, Deed]] = {
    deed.__name__: deed
    for deed in (
        create,
        delete,
        edit,
        move,
        rotate,
        kill,
        die_at_call,
        hand_over,
        jump,
        store_trouble,
        cloud_trouble,
        blackout,
        preempt,
        vanish,
        address,
        relaunch,
        squat,
        usurp,
        puzzle,
        withdraw,
        misspell,
    )
}
