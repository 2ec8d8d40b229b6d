"""Creation: nothing is made twice, nothing is lost, no failure loops."""

from datetime import timedelta

import msgspec
import pytest

from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.instance import InstanceState, Outcome
from proxy_operator.domain.names import (
    FINALIZER,
    INTENT_ANNOTATION,
    instance_name,
    owner_labels,
)
from proxy_operator.domain.proxy import GcpBlock, Phase, ProviderName, Proxy, SecretRef
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from tests.builders import a_proxy, a_secret
from tests.worlds import CLUSTER, a_running_world, a_world, sleep

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def a_gcp_proxy(**block):
    block = {"zone": "a", "fallback_zones": ("b",), **block}
    return a_proxy(provider=ProviderName.GCP, gcp=GcpBlock(**block))


async def test_a_new_proxy_comes_to_have_one_running_instance():
    world = await a_world(a_proxy())
    first = await world.one_pass()
    proxy = await world.proxy()
    assert first.requeue_after == timedelta(seconds=1)
    assert proxy.status.phase is Phase.PROVISIONING
    assert FINALIZER in proxy.metadata.finalizers
    await world.run(MINUTE)
    proxy = await world.proxy()
    [(provider_id, instance)] = world.provider.instances.items()
    assert proxy.status.provider_id == provider_id
    assert (proxy.status.ip, proxy.status.port) == (instance.ip, instance.port)
    assert (await world.provisioned()).reason == "Created"
    assert (await world.healthy()).reason == "NotProbed"
    assert world.events.reasons() == ["InstanceRequested", "InstanceStarted"]


async def test_what_keeps_an_instance_from_starting_is_shown_and_then_forgotten():
    world = await a_world(a_proxy())
    world.provider.provision_delay = HOUR
    world.provider.obstacle = "image squid:9 cannot be pulled"
    await world.run(MINUTE)
    row = await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.FALSE, "Provisioning")
    assert row.message == "the instance is starting: image squid:9 cannot be pulled"
    await world.run(HOUR)
    row = await world.provisioned()
    assert (row.reason, row.message) == ("Created", "")


async def test_the_intent_is_stored_before_the_provider_is_asked():
    world = await a_world(a_proxy())
    world.provider.fail("create", TransientProviderError("no answer"))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    proxy = await world.proxy()
    assert FINALIZER in proxy.metadata.finalizers
    intent = await world.intent()
    assert intent.attempt == 1
    assert intent.request_id
    assert (await world.provisioned()).reason == "ProviderError"


async def test_a_create_without_an_answer_is_sent_again_as_the_same_request():
    world = await a_world(a_proxy())
    world.provider.fail("create", TransientProviderError("no answer"), times=3)
    seen = set()
    for _ in range(3):
        with pytest.raises(TransientProviderError):
            await world.one_pass()
        seen.add((await world.intent()).request_id)
        await sleep(MINUTE)
    await world.restart()
    await world.one_pass()
    assert {made.request_id for made in world.provider.creates} == seen
    assert len(seen) == 1


async def test_a_create_that_can_no_longer_take_effect_is_another_request():
    world = await a_world(a_proxy())
    world.provider.fail("create", TransientProviderError("no answer"))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    first = (await world.intent()).request_id
    await sleep(world.provider.appears_within)
    await world.one_pass()
    assert [made.request_id != first for made in world.provider.creates] == [True]


async def test_a_create_of_another_spec_is_another_request():
    world = await a_world(a_proxy())
    world.provider.fail("create", TransientProviderError("no answer"))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    first = (await world.intent()).request_id
    await world.apply(a_proxy(port=4000))
    await world.one_pass()
    assert [made.request_id != first for made in world.provider.creates] == [True]


async def test_an_instance_that_ran_and_is_gone_is_followed_by_another_request():
    world = await a_running_world(a_proxy())
    [provider_id] = world.provider.instances
    world.provider.vanish(provider_id)
    await world.restart()
    await world.run(MINUTE)
    first, second = world.provider.creates
    assert first.request_id != second.request_id
    await world.delete()
    await world.run(timedelta(seconds=10))
    assert await world.names() == []


async def test_a_refused_create_does_not_hide_the_one_before_it_without_an_answer():
    world = await a_world(a_proxy())
    name = instance_name_of(await world.proxy())
    world.provider.fail("create", TransientProviderError("no answer"))
    world.provider.fail("create", QuotaExceededError("the quota is used up"))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    labels = owner_labels(
        uid=(await world.proxy()).metadata.uid,
        cluster_id=CLUSTER,
        spec_hash=(await world.intent()).spec_hash,
    )
    await world.one_pass()
    assert (await world.intent()).outcome is Outcome.QUOTA
    await world.delete()
    await world.run(MINUTE)
    world.provider.plant(name, labels)
    await world.run(5 * MINUTE)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_a_deletion_that_waits_for_an_instance_sees_it_come_and_go():
    world = await a_world(a_proxy())
    world.provider.appear_delay = timedelta(seconds=12)
    await world.one_pass()
    await world.delete()
    await world.run(timedelta(seconds=30))
    assert len(world.provider.deletes) == 1
    assert await world.names() == []


async def test_a_deletion_that_waits_in_vain_asks_seldom():
    world = await a_world(a_proxy())
    world.provider.vanishing_zones = {""}
    await world.one_pass()
    await world.delete()
    await world.run(timedelta(minutes=4))
    assert world.provider.calls["get"] <= 12
    assert await world.names() == []


async def test_a_deletion_waits_for_nothing_when_the_create_was_denied():
    world = await a_world(a_proxy())
    world.provider.fail("create", EnvironmentProviderError("a right is missing"))
    assert (await world.one_pass()).requeue_after == timedelta(minutes=5)
    assert (await world.provisioned()).reason == "PermanentError"
    await world.delete()
    await world.one_pass()
    assert await world.names() == []


async def test_a_settled_fleet_is_neither_written_nor_touched():
    world = await a_running_world(a_proxy())
    await world.restart()
    version = (await world.proxy()).metadata.resource_version
    creates, deletes = len(world.provider.creates), len(world.provider.world.deletes)
    assert await world.run(HOUR) == []
    assert (await world.proxy()).metadata.resource_version == version
    assert (len(world.provider.creates), len(world.provider.world.deletes)) == (creates, deletes)


async def test_a_lost_reply_leaves_one_instance_which_is_adopted():
    world = await a_world(a_proxy())
    world.provider.lose_replies("create")
    await world.run(MINUTE)
    assert len(world.provider.creates) == 1
    assert (await world.provisioned()).reason == "Created"
    assert "InstanceAdopted" in world.events.reasons()


async def test_an_instance_made_before_a_crash_is_adopted():
    world = await a_world(a_proxy())
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.restart()
    await world.run(MINUTE)
    assert len(world.provider.instances) == len(world.provider.creates) == 1


async def test_an_instance_of_ours_from_another_spec_is_replaced():
    world = await a_world(a_proxy())
    proxy = await world.proxy()
    stale = owner_labels(uid=proxy.metadata.uid, cluster_id=CLUSTER, spec_hash="0" * 32)
    world.provider.plant(instance_name_of(proxy), stale)
    await world.run(5 * MINUTE)
    [instance] = world.provider.instances.values()
    assert instance.labels["proxy-operator-spec-hash"] != "0" * 32
    assert (await world.provisioned()).reason == "Created"


async def test_a_foreign_instance_of_our_name_is_neither_adopted_nor_deleted():
    world = await a_world(a_proxy())
    proxy = await world.proxy()
    foreign = owner_labels(uid=proxy.metadata.uid, cluster_id="other", spec_hash="0" * 32)
    planted = world.provider.plant(instance_name_of(proxy), foreign)
    await world.run(HOUR)
    row = await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.FALSE, "PermanentError")
    assert "foreign" in row.message
    assert [*world.provider.instances] == [planted]
    await world.delete()
    await world.run(HOUR)
    assert await world.names() == []
    assert [*world.provider.instances] == [planted]


async def test_a_foreign_instance_where_the_intent_points_is_not_recorded():
    world = await a_world(a_proxy())
    world.provider.fail("create", TransientProviderError("no answer"))
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    proxy = await world.proxy()
    foreign = owner_labels(uid=proxy.metadata.uid, cluster_id="other", spec_hash="0" * 32)
    world.provider.plant(instance_name_of(proxy), foreign)
    assert (await world.one_pass()).requeue_after == timedelta(minutes=5)
    assert (await world.proxy()).status.provider_id is None
    assert "InstanceAdopted" not in world.events.reasons()
    assert "foreign" in (await world.provisioned()).message


@pytest.mark.parametrize("is_seen_first", [False, True])
async def test_an_accepted_create_that_never_appears_does_not_loop(is_seen_first: bool):
    world = await a_world(a_gcp_proxy())
    if is_seen_first:
        world.provider.provision_delay = HOUR
    else:
        world.provider.vanishing_zones = {"a", "b"}
    start = world.clock.now()
    while world.clock.now() < start + HOUR:
        await world.run(timedelta(seconds=20))
        if is_seen_first:
            for provider_id in [*world.provider.instances]:
                world.provider.vanish(provider_id)
    assert 3 <= len(world.provider.creates) <= 10
    assert {made.zone for made in world.provider.creates} == {"a", "b"}
    ids = [made.request_id for made in world.provider.creates]
    assert len(set(ids)) == len(ids)
    assert "InstanceNeverAppeared" in world.events.reasons()


async def test_after_a_stock_out_the_instance_lands_in_the_fallback_zone():
    world = await a_world(a_gcp_proxy())
    world.provider.stocked_out_zones = {"a"}
    await world.run(timedelta(seconds=10))
    assert (await world.provisioned()).reason == "QuotaExceeded"
    await world.run(5 * MINUTE)
    [instance] = world.provider.instances.values()
    assert instance.zone == "b"
    assert "b" in ((await world.proxy()).status.provider_id or "")
    assert (await world.intent()).attempt == 1


async def test_stock_out_everywhere_makes_ever_longer_waits():
    world = await a_world(a_gcp_proxy())
    world.provider.stocked_out_zones = {"a", "b"}
    await world.run(HOUR)
    assert 5 <= world.provider.calls["create"] <= 10
    assert (await world.intent()).outcome is Outcome.STOCK_OUT


async def test_quota_is_waited_out_even_when_events_come():
    world = await a_world(a_proxy())
    world.provider.fail("create", QuotaExceededError("the quota is used up"), times=None)
    assert (await world.one_pass()).requeue_after == timedelta(minutes=5)
    for _ in range(20):
        await world.one_pass()
    assert world.provider.calls["create"] == 1
    await world.restart()
    await world.one_pass()
    assert world.provider.calls["create"] == 1
    assert (await world.proxy()).status.phase is Phase.PENDING
    world.provider.heal()
    await world.run(6 * MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_quota_is_asked_again_at_once_for_another_spec():
    world = await a_world(a_gcp_proxy(machine_type="big"))
    world.provider.fail("create", QuotaExceededError("the quota is used up"))
    await world.one_pass()
    await world.apply(a_gcp_proxy(machine_type="small"))
    await world.one_pass()
    assert len(world.provider.creates) == 1


async def test_a_permanent_error_is_latched_until_the_spec_changes():
    world = await a_world(a_gcp_proxy())
    world.provider.fail("create", PermanentProviderError("machineType is missing"))
    assert (await world.one_pass()).requeue_after is None
    proxy = await world.proxy()
    assert proxy.status.phase is Phase.FAILED
    await world.restart()
    await world.run(HOUR)
    assert world.provider.calls["create"] == 1
    await world.apply(a_gcp_proxy(machine_type="small"))
    await world.run(MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_a_permanent_error_is_unlatched_by_a_corrected_secret():
    world = await a_world(a_secret(password=b"bad", username=b"u"), with_secret(a_proxy()))
    world.provider.fail("create", PermanentProviderError("the password is refused"))
    await world.one_pass()
    assert (await world.proxy()).status.phase is Phase.FAILED
    assert (await world.one_pass()).requeue_after is None
    await world.apply(a_secret(password=b"good", username=b"u"))
    await world.run(MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_wrong_surroundings_are_shown_and_retried_but_not_latched():
    world = await a_world(a_proxy())
    world.registry.missing = "provider local is not available"
    assert (await world.one_pass()).requeue_after == timedelta(minutes=5)
    assert (await world.provisioned()).reason == "PermanentError"
    world.registry.missing = None
    world.provider.fail("create", EnvironmentProviderError("the engine is not installed"))
    await world.one_pass()
    await world.run(10 * MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_a_missing_secret_is_named_with_the_label_to_add():
    world = await a_world(with_secret(a_proxy()))
    await world.one_pass()
    row = await world.provisioned()
    assert row.reason == "CredentialsError"
    assert "s1" in row.message
    assert "crawl.example.com/credentials" in row.message
    assert world.provider.calls["create"] == 0
    await world.apply(a_secret(labels={}))
    await world.one_pass()
    assert (await world.provisioned()).reason == "CredentialsError"
    await world.apply(a_secret())
    await world.run(MINUTE)
    assert (await world.provisioned()).reason == "Created"


async def test_a_lost_create_is_found_and_deleted_when_the_zone_was_edited():
    world = await a_world(a_gcp_proxy())
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.apply(a_gcp_proxy(zone="c", fallback_zones=()))
    await world.run(10 * MINUTE)
    [instance] = world.provider.instances.values()
    assert instance.zone == "c"
    assert (await world.provisioned()).reason == "Created"


async def test_another_zone_waits_for_a_create_that_may_still_succeed():
    world = await a_world(a_gcp_proxy())
    world.provider.appear_delay = timedelta(minutes=2)
    world.provider.lose_replies("create")
    with pytest.raises(TransientProviderError):
        await world.one_pass()
    await world.apply(a_gcp_proxy(zone="c", fallback_zones=()))
    await world.run(20 * MINUTE)
    [instance] = world.provider.instances.values()
    assert instance.zone == "c"
    assert len(world.provider.world.deletes) == 1


async def test_an_instance_that_appears_late_is_cleared_once_another_runs():
    world = await a_world(a_gcp_proxy())
    world.provider.appear_delay = timedelta(minutes=4)
    await world.run(timedelta(minutes=4, seconds=30))
    world.provider.appear_delay = timedelta(0)
    await world.run(20 * MINUTE)
    assert len(world.provider.instances) == 1


async def test_a_damaged_intent_does_not_stop_the_loop():
    world = await a_running_world(a_proxy())
    await damage_intent(world)
    assert await world.run(HOUR) == []
    assert (await world.provisioned()).reason == "Created"
    await world.delete()
    await world.run(HOUR)
    assert await world.names() == []
    assert world.provider.instances == {}


async def test_stock_out_errors_rotate_even_as_exceptions_of_the_call():
    world = await a_world(a_gcp_proxy())
    world.provider.fail("create", StockOutError("zone a has none left"))
    await world.run(5 * MINUTE)
    [instance] = world.provider.instances.values()
    assert (instance.zone, instance.state) == ("b", InstanceState.RUNNING)


def instance_name_of(proxy):
    return instance_name(proxy.metadata.uid)


def with_secret(proxy):
    spec = msgspec.structs.replace(proxy.spec, credentials_secret_ref=SecretRef(name="s1"))
    return Proxy(metadata=proxy.metadata, spec=spec)


async def damage_intent(world):
    proxy = await world.proxy()
    await world.objects.patch_metadata(
        Proxy,
        ObjectKey("default", "p1"),
        Preconditions(proxy.metadata.uid),
        MetadataPatch(annotations={INTENT_ANNOTATION: "{not json"}),
    )
    await world.sync()
