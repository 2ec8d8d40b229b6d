"""A cloud on virtual time, and what tests ask of it."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from tests.builders import EPOCH
from tests.fakes.compute.conduct import ZONES
from tests.fakes.compute.messages import Answer, Request
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT, a_body
from tests.fakes.compute.transport import InProcessTransport
from tests.fakes.compute.world import World

ZONE = ZONES[0]
API = "/compute/v1"


@dataclass
class HandClock:
    """Time that passes when a test says so."""

    seconds: float = 0.0
    epoch: datetime = field(default=EPOCH)

    def now(self) -> datetime:
        return self.epoch + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


@dataclass
class Cloud:
    """A service and its client. `answers` are not checked by status: tests do that."""

    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.world = World(self.clock)
        self.service = Service(self.world)
        self.transport = InProcessTransport(self.service)

    def passes(self, seconds: float) -> None:
        self.clock.seconds += seconds

    def call(
        self, method: str, path: str, query: dict[str, str] | None = None, **fields: Any
    ) -> Answer:
        request = Request(method, f"{API}/{path}", query or {}, **fields)
        return self.service.handle(request)

    def insert(
        self, name: str = "proxy-a", zone: str = ZONE, request_id: str = "", **body: Any
    ) -> Answer:
        labels = body.pop("labels", {"owner": "us"})
        return self.service.handle(an_insert(name, zone, request_id, labels=labels, **body))

    def get(self, name: str = "proxy-a", zone: str = ZONE) -> Answer:
        return self.call("GET", f"projects/{PROJECT}/zones/{zone}/instances/{name}")

    def delete(self, name: str = "proxy-a", zone: str = ZONE, request_id: str = "") -> Answer:
        query = {"requestId": request_id} if request_id else {}
        return self.call("DELETE", f"projects/{PROJECT}/zones/{zone}/instances/{name}", query)

    def list(self, **query: str) -> Answer:
        query.setdefault("returnPartialSuccess", "true")
        return self.call("GET", f"projects/{PROJECT}/aggregated/instances", query)

    def status(self, name: str = "proxy-a", zone: str = ZONE) -> str:
        """The status of an instance, or of the answer that there is none."""
        answer = self.get(name, zone)
        return str(answer.json()["status"] if answer.status == 200 else answer.status)


def an_insert(
    name: str = "proxy-a", zone: str = ZONE, request_id: str = "", **fields: Any
) -> Request:
    body = {**a_body(zone, name), **fields}
    return Request(
        "POST",
        f"{API}/projects/{PROJECT}/zones/{zone}/instances",
        {"requestId": request_id} if request_id else {},
        {},
        json.dumps(body).encode(),
    )


def a_request_id(number: int | None = None) -> str:
    return str(uuid4() if number is None else UUID(int=number + 1))


def nat_ip(answer: Answer) -> str | None:
    found: str | None = answer.json()["networkInterfaces"][0]["accessConfigs"][0].get("natIP")
    return found


def names_in(answer: Answer) -> list[str]:
    scopes = answer.json()["items"].values()
    return [one["name"] for scope in scopes for one in scope.get("instances", [])]


def reason(answer: Answer) -> str:
    found: str = answer.json()["error"]["errors"][0]["reason"]
    return found
