"""The world's REST dialect: one request in, one answer out, both checked against the description.

A call has two moments: `open` says what it is and what strikes it, `perform` does it. Whoever
carries it waits, and breaks connections.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from tests.fakes.compute.discovery import Description, Method, description
from tests.fakes.compute.faults import Refuse, Struck, Target
from tests.fakes.compute.ledger import Call
from tests.fakes.compute.listing import aggregated_list, read_query
from tests.fakes.compute.messages import Answer, RefusedError, Request, answer_of
from tests.fakes.compute.refusals import forbidden, unavailable
from tests.fakes.compute.tokens import Tokens
from tests.fakes.compute.world import World, require_place

_READS: Final = {"get", "aggregatedList", "operation"}


@dataclass
class Service:
    """The API in front of one world."""

    world: World
    tokens: Tokens | None = None
    allows_version_header: bool = False
    """The official client sends X-Goog-Api-Version; ours must not."""
    checks_answers: bool = True

    def open(self, request: Request) -> "PendingCall":
        """Tell what a request is. Never raises: what is wrong with it comes as the answer."""
        call = PendingCall(self, request, description())
        call.read()
        return call

    def handle(self, request: Request) -> Answer:
        """Do a call at once, whatever strikes it."""
        return self.open(request).perform()


class PendingCall:
    """One call, on its way."""

    def __init__(self, service: Service, request: Request, api: Description) -> None:
        self._service = service
        self._world = service.world
        self._request = request
        self._api = api
        self._method: Method | None = None
        self._parts: dict[str, str] = {}
        self._refusal: RefusedError | None = None
        self._answer: Answer | None = None
        self.target = Target("")
        self.struck = Struck(0.0, 0.0, None, None)

    def read(self) -> None:
        """Find out what the call is, and what strikes it."""
        try:
            self._method, self._parts = self._api.find(self._request)
        except RefusedError as err:
            self._refusal = err
            return
        self.target = _target(self._method, self._parts, self._request)
        self.struck = self._world.faults.strike(self.target)

    def perform_at(self, _: float) -> None:
        """Do it as a deed of the timeline, for a client that may have left."""
        self.perform()

    def perform(self) -> Answer:
        """Do it, once, and return the answer that a client would get."""
        # First: this may do the very call, as a deed that is due.
        at = self._world.now()
        if self._answer is None:
            self._answer = self._perform()
            self._world.ledger.calls.append(Call(at, *self.target, self._answer.status))
        return self._answer

    def _perform(self) -> Answer:
        fate = self.struck.fate
        try:
            if isinstance(fate, Refuse) and not fate.is_done:
                raise fate.error
            document = self._do()
        except RefusedError as err:
            return err.answer()
        if isinstance(fate, Refuse):
            return fate.error.answer()
        return answer_of(document)

    def _do(self) -> dict[str, Any]:
        if self._method is None:
            raise self._refusal or unavailable()
        if self._service.tokens is not None:
            self._service.tokens.require(self._request.headers)
        body = self._checked(self._method)
        self._require_access()
        document = self._deed(body, self._request.query)
        if self._service.checks_answers:
            self._api.check_answer(self._method, document)
        return document

    def _checked(self, method: Method) -> Any:
        """Return the body. What no correct client sends goes into the ledger as well."""
        try:
            self._require_no_version()
            return self._api.check_request(method, self._request)
        except RefusedError as err:
            self._world.ledger.violations.append(f"{method.id}: {err.message}")
            raise

    def _require_no_version(self) -> None:
        is_sent = "x-goog-api-version" in self._request.headers
        if is_sent and not self._service.allows_version_header:
            raise RefusedError(400, "invalid", "X-Goog-Api-Version must not be sent")

    def _require_access(self) -> None:
        conduct, target = self._world.conduct, self.target
        is_allowed = conduct.can_read if target.method in _READS else conduct.can_change
        if not is_allowed:
            raise forbidden(f"compute.instances.{target.method}")
        require_place(conduct, target.project, target.zone)
        if target.zone in conduct.unreachable:
            raise unavailable()

    def _deed(self, body: Any, query: Mapping[str, str]) -> dict[str, Any]:
        world, target = self._world, self.target
        place = (target.project, target.zone)
        request_id = query.get("requestId", "")
        match target.method:
            case "insert":
                return world.insert(place, body, request_id, self.struck.operation).document()
            case "delete":
                return world.delete(*place, target.name, request_id).document()
            case "get":
                return world.find(*place, target.name).document()
            case "operation":
                return world.operation(*place, target.name).document()
            case _:
                machines = world.machines(target.project)
                return aggregated_list(target.project, machines, world.conduct, read_query(query))


def _target(method: Method, parts: Mapping[str, str], request: Request) -> Target:
    resource, _, verb = method.id.removeprefix("compute.").partition(".")
    if resource == "zoneOperations":
        verb = "operation"
    name = parts.get("instance") or parts.get("operation") or ""
    if verb == "insert":
        name = _name_in(request.body)
    return Target(verb, parts["project"], parts.get("zone", ""), name)


def _name_in(body: bytes) -> str:
    """Return the name of the instance to insert; empty when the body is no such thing."""
    try:
        return str(msgspec.json.decode(body)["name"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return ""
