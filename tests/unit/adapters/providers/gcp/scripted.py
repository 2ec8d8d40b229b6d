"""A session that answers from a script, and builders of what the API says."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from proxy_operator.adapters.providers.gcp.session import Document, Reply
from proxy_operator.domain.proxy import GcpBlock, ProviderName, Proxy
from proxy_operator.provisioning.contract import CreateRequest
from tests.builders import a_create_request, a_proxy

CLUSTER = "cluster-1"
ZONE = "europe-west4-a"
REQUEST_ID = "7f1f0a3e-6f0e-4b8e-9d7c-3f2f9f1a0001"


class Sent(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    body: Document | None


class ScriptedSession:
    """Answers in order; what is left over at the end is for the test to look at."""

    def __init__(self, *answers: Reply | Exception) -> None:
        self.answers = deque(answers)
        self.sent: list[Sent] = []
        self.seconds = 0.0
        """How long each answer takes."""

    async def send(
        self, method: str, path: str, query: Mapping[str, str], body: Document | None = None
    ) -> Reply:
        self.sent.append(Sent(method, path, dict(query), body))
        await asyncio.sleep(self.seconds)
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        pass

    def will(self, *answers: Reply | Exception) -> None:
        self.answers.extend(answers)

    @property
    def calls(self) -> list[str]:
        """Methods and last parts of the paths: `GET proxy-abc`, `GET instances`."""
        return [f"{one.method} {one.path.rsplit('/', 1)[-1]}" for one in self.sent]


def ok(body: Document) -> Reply:
    return Reply(200, body)


def operation(*codes: str, status: str = "RUNNING", message: str = "it failed") -> Reply:
    body: dict[str, Any] = {"kind": "compute#operation", "status": status}
    if codes:
        body["status"] = "DONE"
        body["error"] = {"errors": [{"code": code, "message": message} for code in codes]}
    return ok(body)


def refusal(status: int, reason: str = "", *, info: str = "", message: str = "no") -> Reply:
    error: dict[str, Any] = {"code": status, "message": message}
    if reason:
        error["errors"] = [{"reason": reason, "domain": "global", "message": message}]
    if info:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": info}]
    return Reply(status, {"error": error})


def not_found() -> Reply:
    return refusal(404, "notFound")


def an_instance(request: CreateRequest, *, status: str = "RUNNING", **fields: Any) -> Document:
    """The document of an instance that this request would make."""
    return {
        "kind": "compute#instance",
        "name": request.name,
        "zone": f"https://www.googleapis.com/compute/v1/projects/p/zones/{request.zone}",
        "status": status,
        "labels": {**request.labels, "proxy-operator-port": "3128"},
        "creationTimestamp": "2026-01-01T00:00:00.000-08:00",
        "networkInterfaces": [{"accessConfigs": [{"natIP": "203.0.113.7"}]}],
        **fields,
    }


def a_page(*documents: Document, token: str = "", **extra: Any) -> Reply:
    items: dict[str, Any] = {
        "zones/us-east1-b": {"warning": {"code": "NO_RESULTS_ON_PAGE", "message": "none"}}
    }
    for one in documents:
        zone = one["zone"].rsplit("/", 1)[-1]
        items.setdefault(f"zones/{zone}", {}).setdefault("instances", []).append(one)
    body = {"kind": "compute#instanceAggregatedList", "items": items, **extra}
    return ok({**body, "nextPageToken": token} if token else body)


def a_gcp_proxy(name: str = "p1", **block: Any) -> Proxy:
    block = {
        "zone": ZONE,
        "machine_type": "e2-micro",
        "image": "projects/i/global/images/x",
        **block,
    }
    return a_proxy(name, provider=ProviderName.GCP, gcp=GcpBlock(**block))


def a_request(**fields: Any) -> CreateRequest:
    block = fields.pop("block", {})
    fields.setdefault("zone", ZONE)
    fields.setdefault("request_id", REQUEST_ID)
    proxy = fields.pop("proxy", None) or a_gcp_proxy(**block)
    return a_create_request(proxy, cluster_id=CLUSTER, **fields)
