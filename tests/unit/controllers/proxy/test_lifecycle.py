"""From running to gone: drift, replacement, errors, deletion."""

from datetime import timedelta

import pytest

from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.instance import InstanceState
from proxy_operator.domain.names import CLOUD_INIT_LABEL, INTENT_ANNOTATION, SPEC_HASH_ANNOTATION
from proxy_operator.domain.proxy import (
    CloudInit,
    HealthCheck,
    Phase,
    Proxy,
    SecretKeyRef,
    SecretRef,
)
from proxy_operator.domain.secret import Secret
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    QuotaExceededError,
    TransientProviderError,
)
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from tests.builders import a_manifest, a_meta, a_proxy, a_secret
from tests.worlds import World, a_running_world, a_world, sleep

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
KEY = ObjectKey("default", "p1")


def a_user_data(content: bytes) -> Secret:
    return Secret(
        metadata=a_meta("s1", labels={CLOUD_INIT_LABEL: "true"}), data={"user-data": content}
    )


async def patch(world: World, **fields):
    proxy = await world.proxy()
    await world.objects.patch_metadata(
        Proxy, KEY, Preconditions(proxy.metadata.uid), MetadataPatch(**fields)
    )
    await world.sync()


async def test_an_instance_that_vanished_is_made_again_at_once():
    world = await a_running_world(a_proxy())
    [gone] = world.provider.instances
    world.provider.vanish(gone)
    await world.run(timedelta(seconds=20))
    assert len(world.provider.instances) == 1
    assert len(world.provider.creates) == 2
    assert (await world.provisioned()).reason == "Created"
    assert (await world.healthy()).reason == "NotProbed"
    assert "InstanceVanished" in world.events.reasons()


@pytest.mark.parametrize("state", [InstanceState.STOPPED, InstanceState.TERMINATING])
async def test_an_instance_that_stopped_is_replaced(state: InstanceState):
    world = await a_running_world(a_proxy())
    [old] = world.provider.instances
    world.provider.set_state(old, state)
    await world.one_pass()
    proxy = await world.proxy()
    assert proxy.address is None
    assert (await world.healthy()).reason == "NotProvisioned"
    if state is InstanceState.TERMINATING:
        world.provider.vanish(old)
    await world.run(MINUTE)
    assert len(world.provider.creates) == 2
    assert len(world.provider.world.deletes) == (1 if state is InstanceState.STOPPED else 0)
    assert (await world.provisioned()).reason == "Created"


async def test_what_ended_an_instance_is_named_until_another_follows():
    world = await a_running_world(a_proxy())
    [old] = world.provider.instances
    world.provider.trouble = "Evicted"
    world.provider.terminating_for = MINUTE
    world.provider.set_state(old, InstanceState.STOPPED)
    said = "the instance is replaced: it stopped: Evicted"
    for _ in range(2):
        await world.one_pass()
        row = await world.provisioned()
        assert (row.reason, row.message) == ("Replacing", said)
    world.provider.trouble = ""
    await world.run(3 * MINUTE)
    row = await world.provisioned()
    assert (row.reason, row.message) == ("Created", "")
    [told] = [message for _, reason, message in world.events.told if reason == "InstanceReplaced"]
    assert told == f"instance {old} is replaced: it stopped: Evicted"


async def test_a_fault_while_an_instance_goes_is_not_shown_for_longer_than_it_lasts():
    world = await a_running_world(a_proxy())
    [old] = world.provider.instances
    world.provider.terminating_for = MINUTE
    world.provider.set_state(old, InstanceState.STOPPED)
    await world.one_pass()
    world.provider.fail("get", QuotaExceededError("too many calls"))
    await world.one_pass()
    assert "too many calls" in (await world.provisioned()).message
    await world.one_pass()
    assert (await world.provisioned()).message == "the instance is replaced: it is going away"


async def test_what_troubles_a_running_instance_is_shown_and_written_once():
    world = await a_running_world(a_proxy())
    world.provider.trouble = "squid ran out of memory (OOMKilled)"
    await world.one_pass()
    row, before = await world.provisioned(), await world.proxy()
    assert (row.status, row.reason) == (ConditionStatus.TRUE, "Created")
    assert row.message == "squid ran out of memory (OOMKilled)"
    assert before.status.phase is Phase.READY
    await world.run(HOUR)
    assert await world.proxy() == before
    world.provider.trouble = ""
    await world.one_pass()
    assert (await world.provisioned()).message == ""


async def test_an_instance_that_lost_its_address_is_waited_for():
    world = await a_running_world(a_proxy())
    [pid] = world.provider.instances
    world.provider.set_state(pid, InstanceState.PROVISIONING)
    await world.one_pass()
    assert (await world.proxy()).address is None
    world.provider.set_state(pid, None)
    await world.run(MINUTE)
    assert [*world.provider.instances] == [pid]
    assert (await world.provisioned()).reason == "Created"


async def test_a_changed_spec_replaces_the_instance_once():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.terminating_polls = 3
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    assert (await world.provisioned()).reason == "Replacing"
    assert (await world.proxy()).status.phase is Phase.PROVISIONING
    await world.run(5 * MINUTE)
    assert len(world.provider.creates) == 2
    assert len(world.provider.world.deletes) == 1
    assert (await world.proxy()).status.port == 4001
    assert world.events.reasons().count("InstanceReplaced") == 1


async def test_what_the_instance_is_not_made_of_changes_in_place():
    world = await a_running_world(a_proxy())
    await world.apply(
        a_proxy(attributes={"region": "eu"}, max_leases=3, health_check=HealthCheck(interval="10s"))
    )
    await world.run(HOUR)
    assert len(world.provider.creates) == 1
    assert (await world.proxy()).status.observed_generation == 2


@pytest.mark.parametrize("use", ["credentials", "cloud-init"])
async def test_a_rotated_secret_replaces_the_instance(use: str):
    if use == "credentials":
        proxy = a_proxy(credentials_secret_ref=SecretRef(name="s1"))
        before, after = a_secret(), a_secret(username=b"crawler", password=b"other")
    else:
        proxy = a_proxy(cloud_init=CloudInit(secret_ref=SecretKeyRef(name="s1")))
        before = a_user_data(b"one")
        after = a_user_data(b"two")
    world = await a_running_world(before, proxy)
    await world.apply(before)
    await world.run(5 * MINUTE)
    assert len(world.provider.creates) == 1
    await world.apply(after)
    await world.run(5 * MINUTE)
    assert len(world.provider.creates) == 2
    assert len(world.provider.instances) == 1
    assert (await world.provisioned()).status is ConditionStatus.TRUE


async def test_a_secret_that_is_gone_is_said_and_changes_nothing_else():
    proxy = a_proxy(credentials_secret_ref=SecretRef(name="s1"))
    world = await a_running_world(a_secret(), proxy)
    await world.delete("s1", Secret)
    await world.run(HOUR)
    row = await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.TRUE, "Created")
    assert "CredentialsError" in row.message
    assert (await world.proxy()).status.phase is Phase.READY
    await world.apply(a_secret())
    await world.run(2 * MINUTE)
    assert (await world.provisioned()).message == ""
    assert len(world.provider.creates) == 1


async def test_a_proxy_whose_secret_is_gone_can_be_deleted():
    proxy = a_proxy(credentials_secret_ref=SecretRef(name="s1"))
    world = await a_running_world(a_secret(), proxy)
    await world.delete("s1", Secret)
    await world.delete()
    await world.run(MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermanentProviderError("reading is forbidden"), "PermanentError"),
        (EnvironmentProviderError("the key is revoked"), "PermanentError"),
        (QuotaExceededError("too many reads"), "QuotaExceeded"),
        (TransientProviderError("no answer"), "ProviderError"),
    ],
)
async def test_errors_after_creation_change_a_message_and_nothing_else(error, reason: str):
    world = await a_running_world(a_proxy())
    before = await world.provisioned()
    world.provider.fail("get", error, times=None)
    await world.run(10 * MINUTE)
    row = await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.TRUE, "Created")
    assert row.last_transition_at == before.last_transition_at
    assert row.message == f"{reason}: {error}"
    assert (await world.proxy()).status.phase is Phase.READY
    await world.report(is_healthy=False, detail="the proxy refused the connection")
    await world.run(timedelta(seconds=1))
    assert (await world.proxy()).status.phase is Phase.UNHEALTHY
    world.provider.heal()
    await world.run(10 * MINUTE)
    assert (await world.provisioned()).message == ""
    assert len(world.provider.creates) == 1


async def test_an_error_between_deletion_and_return_does_not_look_like_no_appearance():
    world = await a_running_world(a_proxy(port=4000))
    world.provider.terminating_for = timedelta(seconds=20)
    await world.apply(a_proxy(port=4001))
    await world.one_pass()
    world.provider.fail("get", TransientProviderError("no answer"), times=2)
    await world.run(MINUTE)
    assert (await world.provisioned()).reason == "Created"
    assert "InstanceNeverAppeared" not in world.events.reasons()


async def test_deletion_asks_once_and_waits_until_the_instance_is_gone():
    world = await a_running_world(a_proxy())
    world.provider.terminating_polls = 3
    await world.delete()
    for seconds in (1, 5, 5, 5):
        assert await world.names() == ["p1"]
        result = await world.one_pass()
        assert result.requeue_after == timedelta(seconds=seconds)
        assert (await world.provisioned()).reason == "Deleting"
        assert (await world.proxy()).status.phase is Phase.DELETING
    await world.one_pass()
    assert await world.names() == []
    assert world.provider.calls["delete"] == 1
    assert world.events.reasons()[-1] == "InstanceDeleted"


async def test_deletion_before_anything_was_asked_is_immediate():
    world = await a_world(a_proxy())
    await world.delete()
    assert await world.names() == []
    assert world.provider.calls["create"] == 0


async def test_deletion_with_the_instance_missing_creates_nothing():
    world = await a_running_world(a_proxy())
    [pid] = world.provider.instances
    world.provider.vanish(pid)
    await world.delete()
    await world.run(MINUTE)
    assert await world.names() == []
    assert len(world.provider.creates) == 1


async def test_a_create_whose_reply_was_lost_is_found_by_deletion():
    world = await a_world(a_proxy())
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.delete()
    await world.restart()
    await world.run(MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}
    assert len(world.provider.world.deletes) == 1


async def test_the_finalizer_stays_while_a_create_may_still_succeed():
    world = await a_world(a_proxy())
    world.provider.appear_delay = timedelta(minutes=2)
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.delete()
    await world.run(MINUTE)
    assert await world.names() == ["p1"]
    await world.run(9 * MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_an_instance_that_ran_and_is_made_again_is_not_taken_for_gone():
    """A create after a vanished instance is as unanswered as any other."""
    world = await a_running_world(a_proxy())
    [pid] = world.provider.instances
    world.provider.vanish(pid)
    await world.run(timedelta(milliseconds=500))
    await sleep(timedelta(seconds=1))
    world.provider.appear_delay = timedelta(minutes=2)
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.delete()
    await world.run(10 * MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_a_refused_create_does_not_hold_up_deletion():
    world = await a_world(a_proxy())
    world.provider.fail("create", QuotaExceededError("the quota is used up"))
    await world.one_pass()
    await world.delete()
    await world.one_pass()
    assert await world.names() == []


@pytest.mark.parametrize(
    "error", [PermanentProviderError("deleting is forbidden"), TransientProviderError("no answer")]
)
async def test_a_blocked_deletion_says_why_and_keeps_trying(error):
    world = await a_running_world(a_proxy())
    world.provider.fail("delete", error, times=None)
    await world.delete()
    await world.run(30 * MINUTE)
    assert await world.names() == ["p1"]
    row = await world.provisioned()
    assert str(error) in row.message
    assert (await world.proxy()).status.phase is Phase.DELETING
    assert world.events.reasons().count("DeletionBlocked") == 1
    world.provider.heal()
    await world.run(10 * MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_deletion_without_its_provider_waits_visibly():
    world = await a_running_world(a_proxy())
    world.registry.missing = "provider local is not available"
    await world.delete()
    await world.run(10 * MINUTE)
    assert "not available" in (await world.provisioned()).message
    world.registry.missing = None
    await world.run(10 * MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_deletion_with_foreign_finalizers_keeps_the_object_and_deletes_the_instance():
    world = await a_running_world(a_proxy())
    proxy = await world.proxy()
    await patch(world, finalizers=(*proxy.metadata.finalizers, "example.com/other"))
    await world.delete()
    await world.run(HOUR)
    assert (await world.proxy()).metadata.finalizers == ("example.com/other",)
    assert world.provider.instances == {}
    assert len(world.provider.creates) == 1


async def test_annotations_that_were_stripped_are_restored():
    world = await a_running_world(a_proxy())
    await patch(world, annotations={SPEC_HASH_ANNOTATION: None, INTENT_ANNOTATION: None})
    await world.run(5 * MINUTE)
    assert SPEC_HASH_ANNOTATION in (await world.proxy()).metadata.annotations
    assert len(world.provider.creates) == 1
    await world.delete()
    await world.run(MINUTE)
    assert world.provider.instances == {}


async def test_a_status_conflict_is_read_anew_and_redone():
    world = await a_world(a_proxy())
    await world.one_pass()
    await sleep(timedelta(seconds=30))
    # The caches miss this write, as they do when the watch is late.
    proxy = await world.proxy()
    await world.objects.patch_metadata(
        Proxy, KEY, Preconditions(proxy.metadata.uid), MetadataPatch(labels={"a": "b"})
    )
    await world.one_pass()
    assert (await world.provisioned()).reason == "Created"
    assert (await world.proxy()).metadata.labels == {"a": "b"}


async def test_a_successor_of_the_same_name_never_gets_its_predecessors_status():
    world = await a_world(a_proxy())
    await world.one_pass()
    await sleep(timedelta(seconds=30))
    # Behind the operator's back the object is removed and made anew.
    await world.objects.patch_metadata(
        Proxy, KEY, Preconditions((await world.proxy()).metadata.uid), MetadataPatch(finalizers=())
    )
    await world.objects.delete(Proxy, KEY)
    await world.objects.apply(a_manifest(a_proxy()))
    await world.one_pass()
    assert (await world.proxy()).status.provider_id is None
