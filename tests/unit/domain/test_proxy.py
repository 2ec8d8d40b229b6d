import copy

import msgspec
import pytest

from proxy_operator.domain.condition import Condition, ConditionStatus
from proxy_operator.domain.proxy import Endpoint, HealthCheck, Mode, Phase, Proxy, ProxyStatus
from tests.builders import EPOCH, a_proxy, an_external


def test_the_wire_form_has_the_fields_of_the_api():
    proxy = an_external(
        health_check=HealthCheck(expected_status=204),
        max_leases=0,
        status=ProxyStatus(
            phase=Phase.READY,
            ip="192.0.2.1",
            provider_id="x",
            latency_millis=5,
            last_health_check_at=EPOCH,
            observed_generation=1,
            conditions=(
                Condition(
                    type="Healthy",
                    status=ConditionStatus.TRUE,
                    reason="ProbeSucceeded",
                    last_transition_at=EPOCH,
                ),
            ),
        ),
    )
    wire = msgspec.to_builtins(proxy)
    assert wire["spec"] == {
        "mode": "External",
        "endpoint": {"host": "192.0.2.1", "port": 3128},
        "maxLeases": 0,
        "healthCheck": {"expectedStatus": 204},
    }
    assert {k: v for k, v in wire["status"].items() if k != "conditions"} == {
        "phase": "Ready",
        "ip": "192.0.2.1",
        "providerID": "x",
        "latencyMillis": 5,
        "lastHealthCheckTime": "2026-01-01T00:00:00Z",
        "observedGeneration": 1,
    }
    assert msgspec.convert(wire, Proxy) == proxy


def test_an_empty_status_is_an_empty_object():
    assert msgspec.to_builtins(a_proxy())["status"] == {}


def test_a_newer_field_does_not_break_decoding():
    wire = msgspec.to_builtins(a_proxy())
    wire["spec"]["invented"] = {"later": 1}
    wire["metadata"]["managedFields"] = []
    assert msgspec.convert(wire, Proxy).spec == a_proxy().spec


def test_a_draft_leaves_the_original_alone():
    original = a_proxy(status=ProxyStatus(ip="192.0.2.1"))
    before = copy.deepcopy(original)
    draft = original.draft()
    assert draft == original
    draft.status.ip = None
    draft.status.conditions = ()
    draft.status.phase = Phase.FAILED
    assert original == before


@pytest.mark.parametrize("part", ["spec", "metadata"])
def test_spec_and_metadata_cannot_be_changed(part):
    target = getattr(a_proxy(), part)
    with pytest.raises(AttributeError):
        setattr(target, target.__struct_fields__[0], "x")


@pytest.mark.parametrize(
    ("proxy", "address"),
    [
        (a_proxy(), None),
        (a_proxy(status=ProxyStatus(ip="192.0.2.1")), None),
        (a_proxy(status=ProxyStatus(port=3128)), None),
        (a_proxy(status=ProxyStatus(ip="192.0.2.1", port=3128)), ("192.0.2.1", 3128)),
        (an_external(host="::1", port=1), ("::1", 1)),
        (an_external(status=ProxyStatus(ip="192.0.2.9", port=9)), ("192.0.2.1", 3128)),
    ],
)
def test_address(proxy, address):
    assert proxy.address == address


def test_managed_or_not():
    assert a_proxy().is_managed
    assert not a_proxy(mode=Mode.EXTERNAL, endpoint=Endpoint(host="a", port=1)).is_managed
