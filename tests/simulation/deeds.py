"""What people do and what happens to processes; and all deeds by name, the cloud's too.

A deed for which nothing is there does nothing.
"""

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
from tests.fakes.compute.messages import RefusedError
from tests.gcp_worlds import a_gcp_proxy
from tests.simulation import cloud_deeds
from tests.simulation.plan import Happening, Plan, key_of_subject
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


async def _apply(cluster: Cluster, happening: Happening, *, port: int, zone: str) -> None:
    """Apply a manifest; odd subjects use the Secret, every third is spot."""
    others = tuple(z for z in ZONES if z != zone)
    proxy = a_gcp_proxy(
        key_of_subject(happening).name,
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
    await cluster.store.delete(Proxy, key_of_subject(happening))


async def edit(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    found = await cluster.store.get(Proxy, key_of_subject(happening))
    zone = found.spec.gcp.zone if found.spec.gcp else None
    await _apply(cluster, happening, port=3000 + happening.choice % 50, zone=zone or ZONES[0])


async def move(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    found = await cluster.store.get(Proxy, key_of_subject(happening))
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

    loop = asyncio.get_running_loop()
    universe.restores.append(loop.call_later(900 * happening.amount, restore))


async def misspell(universe: Universe, cluster: Cluster, happening: Happening) -> None:
    """Somebody names a zone that does not exist."""
    found = await cluster.store.get(Proxy, key_of_subject(happening))
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


async def mend(universe: Universe) -> None:
    """Do what only people can: correct a misspelt zone, take a usurper away and say so."""
    names = {instance_name(p.metadata.uid) for c in universe.clusters for p in c.proxies()}
    for machine in [m for m in universe.foreign if m.name in names]:
        cloud_deeds.withdraw_usurper(universe, machine)
    for restore in universe.restores:
        restore.cancel()
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
        cloud_deeds.cloud_trouble,
        cloud_deeds.blackout,
        cloud_deeds.preempt,
        cloud_deeds.vanish,
        cloud_deeds.address,
        cloud_deeds.relaunch,
        cloud_deeds.squat,
        cloud_deeds.usurp,
        cloud_deeds.puzzle,
        withdraw,
        misspell,
    )
}
