"""What an insert must be, beyond the schema: names, labels, links and sizes.

Rules of the public reference of instances.insert and of labels.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.messages import RefusedError
from tests.fakes.compute.refusals import invalid, not_found

MAX_METADATA_VALUE: Final = 256 * 1024
MAX_LABELS: Final = 64

_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_LABEL_VALUE: Final = re.compile(r"[a-z0-9_-]{0,63}")
_LINK: Final = re.compile(r"(https://www\.googleapis\.com/compute/v1/|)(projects/[^/]+/)?")


def require_request_id(request_id: str) -> None:
    """RefusedError unless it is empty or a UUID other than zero."""
    if not request_id:
        return
    try:
        number = UUID(request_id).int
    except ValueError:
        number = 0
    if number == 0:
        raise invalid("requestId", "must be a UUID, and not the zero one")


def require_possible(conduct: Conduct, zone: str, body: Mapping[str, Any]) -> None:
    """RefusedError when no cloud could make this instance."""
    _require_labels(body.get("labels", {}))
    _require_machine_type(zone, body.get("machineType", ""))
    _require_disks(conduct, body.get("disks", []))
    _require_network(conduct, body.get("networkInterfaces", []))
    _require_scheduling(body.get("scheduling", {}))
    for item in body.get("metadata", {}).get("items", []):
        if len(item.get("value", "").encode()) > MAX_METADATA_VALUE:
            raise invalid("resource.metadata", f"{item.get('key')} is over 262144 bytes")


def _require_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > MAX_LABELS:
        raise invalid("resource.labels", f"more than {MAX_LABELS}")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise invalid("resource.labels", f"{key}={value}")


def _require_machine_type(zone: str, link: str) -> None:
    rest = _LINK.sub("", link, count=1)
    if not re.fullmatch(r"zones/[a-z0-9-]+/machineTypes/[a-z0-9-]+", rest):
        raise invalid("resource.machineType", f"'{link}'. Not a URL of a machine type.")
    if rest.split("/")[1] != zone:
        raise invalid("resource.machineType", f"'{link}'. It is in another zone.")


def _require_disks(conduct: Conduct, disks: list[Mapping[str, Any]]) -> None:
    boot = [disk for disk in disks if disk.get("boot")]
    if len(boot) != 1:
        raise invalid("resource.disks", "exactly one must be a boot disk")
    image = boot[0].get("initializeParams", {}).get("sourceImage", "")
    if not re.search(r"(^|/)(global/)?images/(family/)?[a-z0-9-]+$", image):
        raise invalid("resource.disks[0].initializeParams.sourceImage", f"'{image}'")
    _require_existing(conduct, image)


def _require_network(conduct: Conduct, interfaces: list[Mapping[str, Any]]) -> None:
    if not interfaces:
        raise RefusedError(400, "required", "Required field 'resource.networkInterfaces'")
    for interface in interfaces:
        for name in ("network", "subnetwork"):
            if interface.get(name):
                _require_existing(conduct, interface[name])


def _require_existing(conduct: Conduct, link: str) -> None:
    if link.rsplit("/", 1)[-1] in conduct.missing:
        raise not_found(link)


def _require_scheduling(scheduling: Mapping[str, Any]) -> None:
    is_spot = scheduling.get("provisioningModel") == "SPOT"
    if is_spot and (
        scheduling.get("automaticRestart", False)
        or scheduling.get("onHostMaintenance", "TERMINATE") != "TERMINATE"
    ):
        raise invalid("resource.scheduling", "a spot instance neither restarts nor migrates")
    if not is_spot and "instanceTerminationAction" in scheduling:
        raise invalid("resource.scheduling.instanceTerminationAction", "only for spot")
