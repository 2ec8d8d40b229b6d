"""While a Secret rotates, whoever gets a lease gets the password of the instance that is there."""

import asyncio
from datetime import timedelta

import pytest

from proxy_operator.domain.lease import Lease
from proxy_operator.domain.names import SPEC_HASH_LABEL
from proxy_operator.domain.proxy import Phase, Proxy, SecretRef
from proxy_operator.domain.secret import Secret
from proxy_operator.leasing.feed import CandidateFeed
from proxy_operator.leasing.gate import CredentialsGate
from proxy_operator.leasing.store import LeaseStore
from proxy_operator.provisioning.credentials import SecretReader, ServingCredentials
from proxy_operator.provisioning.errors import QuotaExceededError
from proxy_operator.runtime.objects import key_of
from tests.builders import a_proxy, a_secret
from tests.worlds import World, a_running_world, sleep

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

MINUTE = timedelta(minutes=1)
OLD = a_secret(username=b"crawler", password=b"old")
NEW = a_secret(username=b"crawler", password=b"new")


class Desk:
    """Leases proxies of a world, and knows which password each instance was made with."""

    def __init__(self, world: World) -> None:
        self.world = world
        proxies, secrets = world.informers[Proxy].store, world.informers[Secret].store
        self.credentials = ServingCredentials(SecretReader(secrets, secrets), world.made_with)
        self.leases = LeaseStore(world.clock)
        gate = CredentialsGate(self.leases, proxies, self.credentials)
        proxies.add_handler(CandidateFeed(gate).handle)
        secrets.add_handler(lambda _: gate.recheck(map(key_of, proxies.list())))
        self.old_hash = self.hash_now()

    def hash_now(self) -> str:
        [instance] = self.world.provider.instances.values()
        return instance.labels[SPEC_HASH_LABEL]

    async def password(self) -> str | None:
        """Return the password of a lease that is granted now."""
        answer = self.leases.acquire(selector={}, namespace=None, target="", ttl=MINUTE)
        if not isinstance(answer, Lease):
            return None
        given = self.credentials.credentials_for(await self.world.proxy())
        assert given is not None
        assert given.password == ("old" if self.hash_now() == self.old_hash else "new")
        return given.password


async def a_desk() -> Desk:
    proxy = a_proxy(port=4000, credentials_secret_ref=SecretRef(name="s1"))
    desk = Desk(await a_running_world(OLD, proxy))
    assert await desk.password() == "old"
    return desk


async def test_no_step_of_a_rotation_gives_the_new_password_for_the_old_instance():
    desk = await a_desk()
    await desk.world.apply(NEW)
    seen = [await desk.password()]
    for _ in range(6):
        await desk.world.run(timedelta(seconds=5))
        seen.append(await desk.password())
    await desk.world.report()
    await desk.world.one_pass()
    seen.append(await desk.password())
    assert seen == [None] * 7 + ["new"]


async def test_a_rotation_that_is_taken_back_ends_the_wait():
    desk = await a_desk()
    await desk.world.apply(NEW)
    assert await desk.password() is None
    await desk.world.apply(OLD)
    assert await desk.password() == "old"


async def test_a_refused_replacement_stays_withheld():
    desk = await a_desk()
    desk.world.provider.fail("check", QuotaExceededError("the quota is used up"), times=None)
    await desk.world.apply(NEW)
    await desk.world.run(20 * MINUTE)
    assert desk.hash_now() == desk.old_hash
    assert await desk.password() is None
    desk.world.provider.heal()
    await desk.world.apply(OLD)
    await desk.world.one_pass()
    assert await desk.password() == "old"


async def test_an_edit_that_is_refused_withholds_nothing():
    desk = await a_desk()
    desk.world.provider.fail("check", QuotaExceededError("the quota is used up"), times=None)
    await desk.world.apply(a_proxy(port=4001, credentials_secret_ref=SecretRef(name="s1")))
    await desk.world.run(MINUTE)
    assert await desk.password() == "old"


async def test_an_instance_made_by_a_pass_that_read_the_old_secret_is_withheld():
    desk = await a_desk()
    world = desk.world
    await world.apply(a_proxy(port=4001, credentials_secret_ref=SecretRef(name="s1")))
    await world.one_pass()
    await world.one_pass()
    world.provider.latency = timedelta(seconds=1)
    async with asyncio.TaskGroup() as group:
        group.create_task(world.one_pass())
        await sleep(timedelta(milliseconds=500))
        await world.apply(NEW)
    world.provider.latency = timedelta()
    desk.old_hash = desk.hash_now()
    assert len(world.provider.creates) == 2
    world.provider.fail("check", QuotaExceededError("the quota is used up"), times=None)
    await world.run(MINUTE)
    await world.report()
    await world.one_pass()
    assert (await world.proxy()).status.phase is Phase.READY
    assert await desk.password() is None


async def test_an_instance_made_with_content_that_was_taken_back_is_withheld():
    desk = await a_desk()
    world = desk.world
    await world.apply(NEW)
    await world.one_pass()
    await world.one_pass()
    world.provider.latency = timedelta(seconds=1)
    async with asyncio.TaskGroup() as group:
        group.create_task(world.one_pass())
        await sleep(timedelta(milliseconds=500))
        await world.apply(OLD)
    world.provider.latency = timedelta()
    assert desk.hash_now() != desk.old_hash
    world.provider.fail("check", QuotaExceededError("the quota is used up"), times=None)
    await world.run(MINUTE)
    await world.report()
    await world.one_pass()
    assert (await world.proxy()).status.phase is Phase.READY
    assert await desk.password() is None
