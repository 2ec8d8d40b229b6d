"""What the API answers to inserts and deletes: a deed that is under way, and how it ended."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.fakes.compute.machine import API, Machine

# How the API says in HTTP what an operation says in a code; anything else is 400.
_STATUS: Final = {
    "QUOTA_EXCEEDED": (403, "FORBIDDEN"),
    "PERMISSIONS_ERROR": (403, "FORBIDDEN"),
    "RESOURCE_NOT_FOUND": (404, "NOT FOUND"),
    "IP_SPACE_EXHAUSTED": (403, "FORBIDDEN"),
    "INTERNAL_ERROR": (500, "INTERNAL ERROR"),
}


@dataclass
class Operation:
    """An insert or a delete. The world alone changes one."""

    number: int
    kind: Literal["insert", "delete"]
    machine: Machine
    request_id: str
    accepted_at: float
    inserted: str
    status: Literal["PENDING", "RUNNING", "DONE"] = "RUNNING"
    ended: str = ""
    error_code: str | None = None

    @property
    def name(self) -> str:
        """Return the name by which zoneOperations.get finds it."""
        return self.name_of(self.number)

    @staticmethod
    def name_of(number: int) -> str:
        """Return the name of the operation with this number."""
        return f"operation-{number:013d}"

    def document(self) -> dict[str, Any]:
        """Return the Operation as the API shows it."""
        machine = self.machine
        zone = f"{API}/projects/{machine.project}/zones/{machine.zone}"
        shown: dict[str, Any] = {
            "kind": "compute#operation",
            "id": str(self.number),
            "name": self.name,
            "operationType": self.kind,
            "status": self.status,
            "progress": 100 if self.status == "DONE" else 0,
            "targetId": machine.id,
            "targetLink": f"{API}/{machine.path}",
            "selfLink": f"{zone}/operations/{self.name}",
            "zone": zone,
            "user": "operator@fake-project.iam.gserviceaccount.com",
            "insertTime": self.inserted,
            "startTime": self.inserted,
        }
        if self.request_id:
            shown["clientOperationId"] = self.request_id
        if self.ended:
            shown["endTime"] = self.ended
        if self.error_code:
            status, words = _error_status(self.error_code)
            error = {"code": self.error_code, "message": _sentence(self.error_code, machine)}
            shown |= {
                "error": {"errors": [error]},
                "httpErrorStatusCode": status,
                "httpErrorMessage": words,
            }
        return shown


def _error_status(code: str) -> tuple[int, str]:
    if code.startswith("ZONE_RESOURCE_POOL_EXHAUSTED"):
        return 503, "SERVICE UNAVAILABLE"
    return _STATUS.get(code, (400, "BAD REQUEST"))


def _sentence(code: str, machine: Machine) -> str:
    if code.startswith("ZONE_RESOURCE_POOL_EXHAUSTED"):
        place = f"projects/{machine.project}/zones/{machine.zone}"
        return f"The zone '{place}' does not have enough resources available right now."
    if code == "QUOTA_EXCEEDED":
        return "Quota 'INSTANCES' exceeded. Limit: 8.0 in this region."
    return f"The insert of '{machine.path}' failed: {code}."
