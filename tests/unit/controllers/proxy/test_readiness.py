"""Health in status: whose verdict, about which address, and when it is let go."""

from datetime import timedelta

import pytest

from proxy_operator.domain.condition import ConditionStatus
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Phase, Proxy, SecretRef
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from tests.builders import EPOCH, a_proxy, an_external
from tests.worlds import a_running_world, a_world, sleep

pytestmark = pytest.mark.looptime(start=0, noop_cycles=3)


async def test_an_external_proxy_needs_no_instance_and_no_finalizer():
    world = await a_world(an_external(host="2001:db8::1", port=3128))
    result = await world.one_pass()
    proxy = await world.proxy()
    assert result.requeue_after is None
    assert proxy.metadata.finalizers == ()
    assert (proxy.status.ip, proxy.status.port) == ("2001:db8::1", 3128)
    assert (await world.provisioned()).reason == "ExternalEndpoint"
    assert proxy.status.phase is Phase.PROVISIONING
    assert sum(world.provider.calls.values()) == 0
    await world.delete()
    assert await world.names() == []


async def test_a_verdict_is_shown_with_its_latency():
    world = await a_world(an_external())
    await world.one_pass()
    await world.report(latency_millis=42)
    await world.one_pass()
    proxy = await world.proxy()
    assert proxy.status.phase is Phase.READY
    assert proxy.status.latency_millis == 42
    assert proxy.status.last_health_check_at == EPOCH
    assert world.events.reasons() == ["BecameHealthy"]
    version = proxy.metadata.resource_version
    await sleep(timedelta(hours=1))
    await world.one_pass()
    assert (await world.proxy()).metadata.resource_version == version


async def test_the_same_verdict_again_asks_the_store_for_nothing(monkeypatch):
    world = await a_world(an_external())
    await sleep(timedelta(milliseconds=1234))
    await world.one_pass()
    await world.report()
    await world.one_pass()
    writes = []
    for verb in ("patch_status", "patch_metadata"):
        monkeypatch.setattr(world.objects, verb, lambda *_: writes.append(_))
    await world.one_pass()
    await world.restart()
    await world.one_pass()
    assert writes == []


@pytest.mark.parametrize(
    ("error", "reason"), [(ProbeError.AUTH, "AuthFailed"), (ProbeError.TIMEOUT, "ProbeFailed")]
)
async def test_a_failed_proxy_is_unhealthy_and_says_why(error: ProbeError, reason: str):
    world = await a_world(an_external())
    await world.one_pass()
    await world.report(is_healthy=False, error=error, detail="why it failed")
    await world.one_pass()
    row = await world.healthy()
    assert (row.status, row.reason) == (ConditionStatus.FALSE, reason)
    assert "why it failed" in row.message
    assert (await world.proxy()).status.latency_millis is None
    assert (await world.proxy()).status.phase is Phase.UNHEALTHY
    assert world.events.reasons() == ["BecameUnhealthy"]


async def test_a_proxy_that_may_not_be_probed_says_so_once():
    world = await a_world(an_external())
    await world.one_pass()
    for detail in ("its endpoint is not allowed", "its endpoint is not allowed"):
        await world.report(is_healthy=False, error=ProbeError.NOT_ALLOWED, detail=detail)
        await world.one_pass()
    row = await world.healthy()
    assert (row.status, row.reason) == (ConditionStatus.FALSE, "NotAllowed")
    assert row.message == "its endpoint is not allowed"
    assert (await world.proxy()).status.phase is Phase.UNHEALTHY
    assert world.events.reasons() == ["ProbeDenied"]


async def test_a_proxy_that_begins_to_refuse_its_login_says_so_once():
    world = await a_world(an_external())
    await world.one_pass()
    for error in (ProbeError.TIMEOUT, ProbeError.REFUSED, ProbeError.AUTH, ProbeError.AUTH):
        await world.report(is_healthy=False, error=error, detail=f"why: {error}")
        await world.one_pass()
    assert [message for _, _, message in world.events.told] == [
        "timeout: why: timeout",
        "auth: why: auth",
    ]


async def test_a_proxy_that_failed_before_it_was_forbidden_says_so_too():
    world = await a_world(an_external())
    await world.one_pass()
    for error in (ProbeError.TIMEOUT, ProbeError.NOT_ALLOWED):
        await world.report(is_healthy=False, error=error, detail="why")
        await world.one_pass()
    assert world.events.reasons() == ["BecameUnhealthy", "ProbeDenied"]


async def test_a_restart_keeps_the_verdict_until_there_is_a_new_one():
    world = await a_running_world(a_proxy())
    world.health.reports.clear()
    await world.restart()
    await world.one_pass()
    assert (await world.proxy()).status.phase is Phase.READY


async def test_a_new_endpoint_starts_without_a_verdict():
    world = await a_world(an_external(host="192.0.2.1"))
    await world.one_pass()
    await world.report()
    await world.one_pass()
    world.health.reports.clear()
    await world.apply(an_external(host="192.0.2.2"))
    await world.one_pass()
    row = await world.healthy()
    assert (row.status, row.reason) == (ConditionStatus.UNKNOWN, "NotProbed")
    assert (await world.proxy()).status.ip == "192.0.2.2"


async def test_without_a_target_nothing_is_claimed():
    world = await a_world(an_external())
    world.health.is_without_target = True
    await world.one_pass()
    row = await world.healthy()
    assert (row.status, row.reason) == (ConditionStatus.UNKNOWN, "NoProbeTarget")
    assert "--health-url" in row.message
    world.health.is_without_target = False
    await world.one_pass()
    assert (await world.healthy()).reason == "NotProbed"


async def test_missing_credentials_of_an_external_proxy_are_said():
    world = await a_world(an_external(credentials_secret_ref=SecretRef(name="s1")))
    await world.one_pass()
    row = await world.provisioned()
    assert (row.status, row.reason) == (ConditionStatus.TRUE, "ExternalEndpoint")
    assert "CredentialsError" in row.message


async def test_a_proxy_that_is_gone_is_no_error():
    world = await a_world()
    assert (await world.one_pass("nobody")).requeue_after is None


async def test_a_deleting_object_never_gets_a_finalizer():
    world = await a_world(a_proxy(meta={"finalizers": ("example.com/other",)}))
    proxy = await world.proxy()
    await world.objects.patch_metadata(
        Proxy,
        ObjectKey("default", "p1"),
        Preconditions(proxy.metadata.uid),
        MetadataPatch(finalizers=("example.com/other",)),
    )
    await world.delete()
    await world.one_pass()
    proxy = await world.proxy()
    assert FINALIZER not in proxy.metadata.finalizers
    assert proxy.status.phase is Phase.DELETING
    assert world.provider.calls["create"] == 0
