from typing import Any

import pytest

from proxy_operator.adapters.providers.kubernetes import manifests
from proxy_operator.adapters.providers.kubernetes.manifests import PodSettings
from proxy_operator.adapters.providers.kubernetes.states import (
    instance_of,
    is_waiting_for_files,
    state_of,
)
from proxy_operator.domain.instance import InstanceState
from tests.builders import EPOCH, a_create_request


def a_pod(*, deleted: bool = False, node: str = "", **status: Any) -> dict[str, Any]:
    pod = manifests.pod(a_create_request(), PodSettings(image="squid"))
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if deleted:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z"
    if node:
        pod["spec"]["nodeName"] = node
    return {**pod, "status": status}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"image": "squid:9", "state": state}]}


@pytest.mark.parametrize(
    ("pod", "state"),
    [
        (a_pod(), InstanceState.PROVISIONING),
        (a_pod(phase="Pending"), InstanceState.PROVISIONING),
        (a_pod(phase="Running"), InstanceState.PROVISIONING),
        (a_pod(phase="Running", podIP="10.0.0.1"), InstanceState.RUNNING),
        (a_pod(phase="Succeeded", podIP="10.0.0.1"), InstanceState.STOPPED),
        (a_pod(phase="Failed", reason="Evicted"), InstanceState.STOPPED),
        (a_pod(phase="Unknown"), InstanceState.PROVISIONING),
        (a_pod(phase="Dreaming"), InstanceState.PROVISIONING),
        (a_pod(phase="Running", podIP="10.0.0.1", deleted=True), InstanceState.TERMINATING),
        (a_pod(phase="Failed", deleted=True), InstanceState.TERMINATING),
    ],
)
def test_states(pod: dict[str, Any], state: InstanceState) -> None:
    assert state_of(pod) is state


def test_a_running_pod_has_an_address_and_its_owner_labels_only() -> None:
    instance = instance_of(a_pod(phase="Running", podIP="fd00::7"))
    assert (instance.ip, instance.port) == ("fd00::7", 3128)
    assert set(instance.labels) == {
        "proxy-operator-uid",
        "proxy-operator-cluster",
        "proxy-operator-spec-hash",
    }
    assert instance.created_at == EPOCH
    assert instance.message == ""


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff"])
def test_an_image_that_cannot_be_pulled_reads_the_same_every_time(reason: str) -> None:
    pod = a_pod(**waiting(reason, "Back-off 12s: registry says no"))
    assert instance_of(pod).message == "image squid:9 cannot be pulled; see the Pod's events"


def test_what_the_kubelet_cannot_make_is_said() -> None:
    pod = a_pod(**waiting("CreateContainerConfigError", 'secret "x" not found'))
    assert instance_of(pod).message == 'CreateContainerConfigError: secret "x" not found'


def test_no_node_is_said() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    pod = a_pod(phase="Pending", conditions=[condition])
    assert instance_of(pod).message == "no node takes the Pod: 0/1 nodes are available"


def test_a_pod_that_starts_normally_has_nothing_to_say() -> None:
    assert instance_of(a_pod(**waiting("ContainerCreating"))).message == ""


@pytest.mark.parametrize(
    ("pod", "is_waiting"),
    [
        (a_pod(node="n", **waiting("ContainerCreating")), True),
        (a_pod(node="n", phase="Pending"), True),
        (a_pod(**waiting("ContainerCreating")), False),
        (a_pod(node="n", **waiting("ImagePullBackOff")), False),
        (a_pod(node="n", phase="Running"), False),
    ],
)
def test_only_a_scheduled_pod_waits_for_files(pod: dict[str, Any], is_waiting: bool) -> None:
    assert is_waiting_for_files(pod) is is_waiting
