"""What an instance is made of, as pure functions of the request; and the ids of instances.

A rule a visitor must keep: the owner labels are part of the insert itself, and nothing that a
user typed goes into a label.
"""

import re
import uuid
from typing import Any, Final

from proxy_operator.adapters.providers.gcp.session import Document
from proxy_operator.domain.proxy import GcpBlock, ProxySpec
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import PermanentProviderError

DEFAULT_PORT: Final = 3128
PORT_LABEL: Final = "proxy-operator-port"
"""Where the proxy on the instance was asked to listen."""
_LARGEST_USER_DATA: Final = 256 * 1024
"""Bytes of one metadata value (Compute Engine, "About VM metadata")."""
_LABEL: Final = re.compile(r"[a-z0-9_-]{0,63}")
_REQUIRED: Final = {
    "zone": "such as europe-west4-a",
    "machineType": "such as e2-micro",
    "image": "such as projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
}
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


def check(request: CreateRequest) -> None:
    """Raise PermanentProviderError for what no attempt could change."""
    block = request.spec.gcp or GcpBlock()
    values = {"zone": block.zone, "machineType": block.machine_type, "image": block.image}
    for name, example in _REQUIRED.items():
        if not values[name]:
            raise PermanentProviderError(f"spec.gcp.{name} is missing: set it, {example}")
    for name, value in request.labels.items():
        if not _LABEL.fullmatch(value):
            raise PermanentProviderError(
                f"the label {name} cannot be {value!r}: a-z 0-9 _ and -, up to 63 characters"
            )
    _user_data(request)


def request_id_of(request: CreateRequest) -> str:
    """Return the id that makes a repeated insert the same insert (AIP-155)."""
    try:
        found = uuid.UUID(request.request_id)
    except ValueError as err:
        raise PermanentProviderError("a create needs a UUID as its request id") from err
    if found.int == 0:
        raise PermanentProviderError("a create needs a request id other than the zero UUID")
    return str(found)


def instance(request: CreateRequest) -> Document:
    """Return the body of the insert. PermanentProviderError as `check`."""
    check(request)
    block = request.spec.gcp or GcpBlock()
    document: Document = {
        "name": request.name,
        "description": f"Proxy {request.namespace}/{request.proxy_name}",
        "machineType": _path(f"zones/{request.zone}/machineTypes", block.machine_type or ""),
        "labels": {**request.labels, PORT_LABEL: str(request.spec.port or DEFAULT_PORT)},
        "disks": [_boot_disk(block)],
        "networkInterfaces": [_interface(request, block)],
    }
    user_data = _user_data(request)
    if user_data is not None:
        document["metadata"] = {"items": [{"key": "user-data", "value": user_data}]}
    if block.network_tags:
        document["tags"] = {"items": list(block.network_tags)}
    if block.spot:
        document["scheduling"] = {
            "provisioningModel": "SPOT",
            "instanceTerminationAction": "DELETE",
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
        }
    if block.service_account:
        document["serviceAccounts"] = [{"email": block.service_account, "scopes": [_SCOPE]}]
    return document


def placements(spec: ProxySpec) -> tuple[str, ...]:
    """Return the zone, then its fallbacks; without a zone `("",)`."""
    if spec.gcp is None or not spec.gcp.zone:
        return ("",)
    return tuple(dict.fromkeys((spec.gcp.zone, *spec.gcp.fallback_zones)))


def _boot_disk(block: GcpBlock) -> dict[str, Any]:
    source: dict[str, Any] = {"sourceImage": block.image}
    if block.disk_size_gb is not None:
        source["diskSizeGb"] = str(block.disk_size_gb)  # an int64 is text in JSON
    return {"boot": True, "autoDelete": True, "initializeParams": source}


def _interface(request: CreateRequest, block: GcpBlock) -> dict[str, Any]:
    """Return an interface with an ephemeral external address."""
    found: dict[str, Any] = {
        "accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}],
    }
    if block.network or not block.subnetwork:
        found["network"] = _path("global/networks", block.network or "default")
    if block.subnetwork:
        region = request.zone.rpartition("-")[0]
        found["subnetwork"] = _path(f"regions/{region}/subnetworks", block.subnetwork)
    return found


def _path(collection: str, name: str) -> str:
    """Return a name as a partial URL; what is a path already stays."""
    return name if "/" in name else f"{collection}/{name}"


def _user_data(request: CreateRequest) -> str | None:
    if request.user_data is None:
        return None
    if len(request.user_data) > _LARGEST_USER_DATA:
        raise PermanentProviderError("spec.cloudInit: user data is larger than 256 KiB")
    try:
        return request.user_data.decode()
    except UnicodeDecodeError as err:
        raise PermanentProviderError("spec.cloudInit: user data is not UTF-8 text") from err


_ID: Final = re.compile(r"zones/([a-z0-9][-a-z0-9]*)/instances/([a-z0-9][-a-z0-9]*)")


def provider_id_of(zone: str, name: str) -> str:
    """Return the id of the instance of that name in that zone."""
    return f"zones/{zone}/instances/{name}"


def parse_provider_id(provider_id: str) -> tuple[str, str] | None:
    """Return zone and name, or None when no instance can have that id."""
    found = _ID.fullmatch(provider_id)
    return (found[1], found[2]) if found else None
