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


def ended(reason: str, exit_code: int) -> dict[str, Any]:
    return {"terminated": {"reason": reason, "exitCode": exit_code, "finishedAt": "any time"}}


def back_off(span: str) -> dict[str, Any]:
    message = f"back-off {span} restarting failed container=squid"
    return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}


def a_restarting_pod(state: dict[str, Any], last: dict[str, Any], count: int) -> dict[str, Any]:
    squid = {"name": "squid", "state": state, "lastState": last, "restartCount": count}
    sidecar = {"name": "aside", "state": {"running": {}}, "lastState": ended("Error", 9)}
    return a_pod(phase="Running", podIP="10.0.0.1", containerStatuses=[sidecar, squid])


@pytest.mark.parametrize(
    ("reason", "exit_code", "said"),
    [
        (
            "OOMKilled",
            137,
            "squid ran out of memory (OOMKilled); give it more in spec.kubernetes.resources",
        ),
        ("Error", 1, "squid ended with exit code 1 and is started again; see the Pod's logs"),
        ("Completed", 0, "squid ended with exit code 0 and is started again; see the Pod's logs"),
        (
            "StartError",
            128,
            "squid ended with exit code 128 (StartError) and is started again; see the Pod's logs",
        ),
    ],
)
def test_an_end_of_squid_reads_the_same_in_every_moment_of_its_restarts(
    reason: str, exit_code: int, said: str
) -> None:
    end = ended(reason, exit_code)
    moments = [
        a_restarting_pod(end, {}, 0),
        a_restarting_pod(back_off("10s"), end, 1),
        a_restarting_pod({"running": {"startedAt": "now"}}, end, 1),
        a_restarting_pod(end, end, 1),
        a_restarting_pod(back_off("20s"), end, 2),
    ]
    instances = [instance_of(pod) for pod in moments]
    assert {one.message for one in instances} == {said}
    assert {one.state for one in instances} == {InstanceState.RUNNING}


def test_a_back_off_before_the_first_start_reads_the_same_however_long_it_is() -> None:
    said = set()
    for span in ("10s", "20s"):
        status = {"name": "squid", "state": back_off(span)}
        said.add(instance_of(a_pod(phase="Pending", containerStatuses=[status])).message)
    assert said == {"CrashLoopBackOff"}


def test_what_ended_a_pod_for_good_is_named_without_its_figures() -> None:
    pod = a_pod(phase="Failed", reason="Evicted", message="low on memory: 12Ki available")
    assert instance_of(pod).message == "Evicted"


def test_a_pod_that_is_deleted_has_nothing_to_say() -> None:
    squid = {"name": "squid", "state": ended("Error", 1)}
    assert instance_of(a_pod(deleted=True, containerStatuses=[squid])).message == ""


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
