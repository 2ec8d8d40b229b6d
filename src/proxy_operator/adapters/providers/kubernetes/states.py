"""A Pod as an instance: a table, and what a person should know of one that starts badly or ends.

Whatever is not known to be at an end counts as existing.
"""

from datetime import datetime
from typing import Any, Final

from proxy_operator.adapters.kube.resources import Document
from proxy_operator.adapters.providers.kubernetes import manifests
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, SPEC_HASH_LABEL, UID_LABEL

_OWNER_LABELS: Final = (UID_LABEL, CLUSTER_LABEL, SPEC_HASH_LABEL)
_LONGEST: Final = 300


def instance_of(pod: Document) -> Instance:
    """Return the instance that a Pod is."""
    meta, state = pod["metadata"], state_of(pod)
    labels = meta.get("labels", {})
    is_running = state is InstanceState.RUNNING
    return Instance(
        provider_id=manifests.provider_id_of(meta["namespace"], meta["name"]),
        state=state,
        ip=_ip_of(pod) if is_running else None,
        port=manifests.port_of(pod) if is_running else None,
        labels={name: labels[name] for name in _OWNER_LABELS if name in labels},
        created_at=datetime.fromisoformat(meta["creationTimestamp"]),
        message=_message_of(pod, state),
    )


def state_of(pod: Document) -> InstanceState:
    """Return the state of a Pod (core/v1 PodPhase, and whether it is being deleted)."""
    if pod["metadata"].get("deletionTimestamp"):
        return InstanceState.TERMINATING
    match pod.get("status", {}).get("phase"):
        case "Succeeded" | "Failed":
            return InstanceState.STOPPED
        case "Running" if _ip_of(pod):
            return InstanceState.RUNNING
        case _:
            return InstanceState.PROVISIONING


def is_waiting_for_files(pod: Document) -> bool:
    """Tell whether a node has taken the Pod and no container has come to life yet.

    So it is while a Secret or ConfigMap is missing, and for a moment at every start.
    """
    status = pod.get("status", {})
    return (
        status.get("phase") == "Pending"
        and bool(pod["spec"].get("nodeName"))
        and all(
            container.get("state", {}).get("waiting", {}).get("reason") == "ContainerCreating"
            for container in status.get("containerStatuses", ())
        )
    )


def _message_of(pod: Document, state: InstanceState) -> str:
    """Return what troubles a Pod, in words that stay the same while it lasts."""
    match state:
        case InstanceState.PROVISIONING:
            return _obstacle_of(pod)
        case InstanceState.RUNNING:
            return _end_of_squid(pod)
        case InstanceState.STOPPED:
            # The message beside it has figures that change from Pod to Pod.
            reason: str = pod["status"].get("reason", "")
            return reason
        case InstanceState.TERMINATING:
            return ""


def _end_of_squid(pod: Document) -> str:
    """Return how squid ended last, for as long as the Pod remembers it.

    Running, ended and waiting for its next start take turns: all read the same.
    """
    for container in pod["status"].get("containerStatuses", ()):
        if container.get("name") == manifests.CONTAINER:
            return _end(container)
    return ""


def _end(container: dict[str, Any]) -> str:
    end = container.get("state", {}).get("terminated")
    end = end or container.get("lastState", {}).get("terminated")
    if not end:
        return ""
    reason: str = end.get("reason", "")
    if reason == "OOMKilled":
        return f"squid ran out of memory ({reason}); give it more in spec.kubernetes.resources"
    # The other words of the kubelet say no more than the number.
    named = "" if reason in {"", "Error", "Completed"} else f" ({reason})"
    return (
        f"squid ended with exit code {end.get('exitCode')}{named} and is started again;"
        " see the Pod's logs"
    )


def _obstacle_of(pod: Document) -> str:
    status = pod.get("status", {})
    for container in status.get("containerStatuses", ()):
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            return _waiting(container, waiting)
    for condition in status.get("conditions", ()):
        if (condition.get("type"), condition.get("status")) == ("PodScheduled", "False"):
            return f"no node takes the Pod: {condition.get('message', '')}"[:_LONGEST]
    return ""


def _waiting(container: dict[str, Any], waiting: dict[str, Any]) -> str:
    reason = waiting.get("reason", "")
    match reason:
        case "" | "ContainerCreating" | "PodInitializing":
            return ""
        case "ErrImagePull" | "ImagePullBackOff" | "ErrImageNeverPull" | "InvalidImageName":
            # The first two take turns, each with a message of its own.
            return f"image {container.get('image', '')} cannot be pulled; see the Pod's events"
        case "CrashLoopBackOff":
            return "CrashLoopBackOff"  # its message tells how long, which changes
        case _:
            return f"{reason}: {waiting.get('message', '')}"[:_LONGEST]


def _ip_of(pod: Document) -> str | None:
    ip: str | None = pod.get("status", {}).get("podIP")
    return ip or None
