"""Every status of an instance, its address and its port."""

import pytest

from proxy_operator.adapters.providers.gcp.states import instance_of
from proxy_operator.domain.instance import InstanceState
from tests.unit.adapters.providers.gcp.scripted import ZONE, a_request, an_instance

P, R, S, T = (
    InstanceState.PROVISIONING,
    InstanceState.RUNNING,
    InstanceState.STOPPED,
    InstanceState.TERMINATING,
)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((status, P) for status in ("PENDING", "PROVISIONING", "STAGING", "REPAIRING")),
        ("RUNNING", R),
        *((status, T) for status in ("STOPPING", "SUSPENDING", "PENDING_STOP", "DEPROVISIONING")),
        *((status, S) for status in ("TERMINATED", "STOPPED", "SUSPENDED", "NEWLY_INVENTED")),
    ],
)
def test_every_status_is_a_state(status, state):
    instance = instance_of(an_instance(a_request(), status=status))
    assert instance.state is state
    assert instance.ip == ("203.0.113.7" if state is R else None)


def test_an_instance_shows_what_the_contract_asks_for():
    request = a_request()
    instance = instance_of(an_instance(request))
    assert instance.provider_id == f"zones/{ZONE}/instances/{request.name}"
    assert (instance.port, instance.zone) == (3128, ZONE)
    assert instance.labels == request.labels
    assert instance.created_at is not None
    assert instance.created_at.tzinfo is not None


@pytest.mark.parametrize(
    "interfaces", [[], [{}], [{"accessConfigs": []}], [{"accessConfigs": [{"natIP": ""}]}]]
)
def test_without_an_external_address_it_is_on_its_way(interfaces):
    instance = instance_of(an_instance(a_request(), networkInterfaces=interfaces))
    assert (instance.state, instance.ip) == (P, None)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00:00"])
def test_an_age_that_is_not_known_is_none(text):
    assert instance_of(an_instance(a_request(), creationTimestamp=text)).created_at is None


def test_a_missing_status_counts_as_existing():
    document = an_instance(a_request())
    del document["status"], document["labels"]
    instance = instance_of(document)
    assert (instance.state, instance.labels, instance.port) == (S, {}, None)
