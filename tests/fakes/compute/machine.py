"""One instance of the world, and how the API shows it. The world alone changes one."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tests.fakes.compute.ledger import Life

API: Final = "https://www.googleapis.com/compute/v1"

_SHOWN: Final = (
    "canIpForward",
    "deletionProtection",
    "description",
    "machineType",
    "scheduling",
    "serviceAccounts",
    "shieldedInstanceConfig",
)


@dataclass
class Machine:
    """An instance, from its accepted insert until it is gone. `body` is what was asked for."""

    id: str
    project: str
    zone: str
    name: str
    body: Mapping[str, Any]
    status: str = "PROVISIONING"
    created_at: str = ""
    """Empty until it appears: the name is taken, and nobody can see it."""
    started_at: str = ""
    nat_ip: str | None = None
    life: Life | None = None
    is_ending: bool = False
    """It is STOPPING and will be gone; one that was only stopped will be TERMINATED."""
    is_gone: bool = False
    _shown: tuple[Any, dict[str, Any]] = ((), {})
    """The document, and the state it shows; fingerprints make it dear."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Project, zone and name: what is unique at one moment."""
        return self.project, self.zone, self.name

    @property
    def path(self) -> str:
        """Return the name of the resource, relative to the API."""
        return f"projects/{self.project}/zones/{self.zone}/instances/{self.name}"

    @property
    def labels(self) -> Mapping[str, str]:
        """Return the labels it was made with."""
        labels: Mapping[str, str] = self.body.get("labels", {})
        return labels

    @property
    def is_visible(self) -> bool:
        """Tell whether a get finds it."""
        return bool(self.created_at) and not self.is_gone

    def metadata(self, key: str) -> str | None:
        """Return one value of its metadata."""
        items = self.body.get("metadata", {}).get("items", [])
        return next((one["value"] for one in items if one["key"] == key), None)

    def document(self) -> dict[str, Any]:
        """Return the Instance that a get answers; it is the reader's to look at only."""
        state = (self.status, self.created_at, self.started_at, self.nat_ip)
        if self._shown[0] != state:
            self._shown = (state, self._document())
        return self._shown[1]

    def _document(self) -> dict[str, Any]:
        shown = {name: self.body[name] for name in _SHOWN if name in self.body}
        shown |= {
            "kind": "compute#instance",
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "creationTimestamp": self.created_at,
            "zone": f"{API}/projects/{self.project}/zones/{self.zone}",
            "selfLink": f"{API}/{self.path}",
            "disks": [self._disk(n, one) for n, one in enumerate(self.body.get("disks", []))],
            "networkInterfaces": [
                self._interface(n, one) for n, one in enumerate(self.body["networkInterfaces"])
            ],
            "labelFingerprint": _fingerprint(self.labels),
            "fingerprint": _fingerprint([self.id, self.status]),
        }
        if self.labels:
            shown["labels"] = dict(self.labels)
        if self.started_at:
            shown["lastStartTimestamp"] = self.started_at
        for name in ("metadata", "tags"):
            part = self.body.get(name, {})
            shown[name] = {**part, "fingerprint": _fingerprint(part)}
        shown["metadata"]["kind"] = "compute#metadata"
        return shown

    def _disk(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        disk = {k: v for k, v in asked.items() if k != "initializeParams"}
        size = asked.get("initializeParams", {}).get("diskSizeGb", "10")
        disks = f"{API}/projects/{self.project}/zones/{self.zone}/disks"
        return {
            "kind": "compute#attachedDisk",
            "type": "PERSISTENT",
            "mode": "READ_WRITE",
            "index": number,
            "diskSizeGb": size,
            "source": f"{disks}/{self.name}",
            **disk,
        }

    def _interface(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        shown = {k: v for k, v in asked.items() if k != "accessConfigs"}
        shown |= {
            "kind": "compute#networkInterface",
            "name": f"nic{number}",
            "networkIP": f"10.132.{int(self.id) // 250 % 250}.{int(self.id) % 250 + 2}",
        }
        configs = [
            {
                "kind": "compute#accessConfig",
                "name": "external-nat",
                "networkTier": "PREMIUM",
                **config,
            }
            for config in asked.get("accessConfigs", [])
        ]
        if configs:
            shown["accessConfigs"] = configs
            if self.nat_ip is not None and number == 0:
                configs[0]["natIP"] = self.nat_ip
        return shown


def _fingerprint(content: Any) -> str:
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).digest()
    return base64.b64encode(digest[:8]).decode()
