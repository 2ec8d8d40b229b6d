"""An instance of the API as an instance of the contract: a table of states.

Whatever is not known counts as existing.
"""

from datetime import datetime
from typing import Final

from proxy_operator.adapters.providers.gcp.manifests import PORT_LABEL, provider_id_of
from proxy_operator.adapters.providers.gcp.session import Document
from proxy_operator.domain.instance import Instance, InstanceState
from proxy_operator.domain.names import CLUSTER_LABEL, SPEC_HASH_LABEL, UID_LABEL

_OWNER_LABELS: Final = (UID_LABEL, CLUSTER_LABEL, SPEC_HASH_LABEL)
_LONGEST: Final = 300

STATES: Final = {
    "PENDING": InstanceState.PROVISIONING,
    "PROVISIONING": InstanceState.PROVISIONING,
    "STAGING": InstanceState.PROVISIONING,
    "REPAIRING": InstanceState.PROVISIONING,
    "RUNNING": InstanceState.RUNNING,
    "STOPPING": InstanceState.TERMINATING,
    "SUSPENDING": InstanceState.TERMINATING,
    "PENDING_STOP": InstanceState.TERMINATING,
    "DEPROVISIONING": InstanceState.TERMINATING,
    "TERMINATED": InstanceState.STOPPED,
    "STOPPED": InstanceState.STOPPED,
    "SUSPENDED": InstanceState.STOPPED,
}
"""Instance.status of compute/v1; anything else is Stopped."""


def instance_of(document: Document) -> Instance:
    """Return the instance that an Instance of the API is."""
    state = state_of(document)
    is_running = state is InstanceState.RUNNING
    labels = document.get("labels") or {}
    port = labels.get(PORT_LABEL, "")
    zone = document.get("zone", "").rsplit("/", 1)[-1]
    is_starting = state is InstanceState.PROVISIONING
    return Instance(
        provider_id=provider_id_of(zone, document["name"]),
        state=state,
        ip=_nat_ip(document) if is_running else None,
        port=int(port) if is_running and port.isdecimal() else None,
        zone=zone,
        labels={name: labels[name] for name in _OWNER_LABELS if name in labels},
        created_at=_moment(document.get("creationTimestamp")),
        message=document.get("statusMessage", "")[:_LONGEST] if is_starting else "",
    )


def state_of(document: Document) -> InstanceState:
    """Return the state; without an address a running instance is still on its way."""
    state = STATES.get(document.get("status", ""), InstanceState.STOPPED)
    if state is InstanceState.RUNNING and _nat_ip(document) is None:
        return InstanceState.PROVISIONING
    return state


def _nat_ip(document: Document) -> str | None:
    for interface in document.get("networkInterfaces") or ():
        for access in interface.get("accessConfigs") or ():
            ip: str | None = access.get("natIP")
            if ip:
                return ip
    return None


def _moment(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
