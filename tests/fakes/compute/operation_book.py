"""All operations ever accepted, and which request id stands for which of them."""

import itertools
from datetime import timedelta
from typing import Literal
from uuid import UUID

from tests.fakes.compute.machine import Machine
from tests.fakes.compute.operation import Operation
from tests.fakes.compute.refusals import not_found
from tests.fakes.compute.timeline import Timeline

Place = tuple[str, str]
"""Project and zone."""


class OperationBook:
    """Finds operations by name, number, or the request id that began them."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._numbers = itertools.count(1)
        self._by_name: dict[tuple[str, str, str], Operation] = {}
        self._by_request: dict[tuple[str, UUID], Operation] = {}
        self._unfinished: dict[str, list[Operation]] = {}

    def find(self, place: Place, name: str) -> Operation:
        """Return an operation by its name or number. RefusedError 404 when there is none."""
        key = Operation.name_of(int(name)) if name.isdigit() else name
        found = self._by_name.get((*place, key))
        if found is None:
            raise not_found(f"projects/{place[0]}/zones/{place[1]}/operations/{name}")
        return found

    def of_request(
        self, project: str, request_id: str, now: float, memory: timedelta | None
    ) -> Operation | None:
        """Return what this request id began, while that is remembered."""
        if not request_id:
            return None
        earlier = self._by_request.get((project, UUID(request_id)))
        if earlier is None or memory is None:
            return earlier
        return earlier if now - earlier.accepted_at < memory.total_seconds() else None

    def begin(
        self, kind: Literal["insert", "delete"], machine: Machine, request_id: str, now: float
    ) -> Operation:
        """Accept a deed."""
        operation = Operation(
            next(self._numbers), kind, machine, request_id, now, self._timeline.stamp(now)
        )
        self._by_name[(machine.project, machine.zone, operation.name)] = operation
        self._unfinished.setdefault(machine.id, []).append(operation)
        if request_id:
            self._by_request[(machine.project, UUID(request_id))] = operation
        return operation

    def finish(self, operation: Operation, moment: float, error_code: str | None = None) -> None:
        """Let an operation be done, well or not. Twice is as once."""
        if operation.status != "DONE":
            operation.status = "DONE"
            operation.ended = self._timeline.stamp(moment)
            operation.error_code = error_code

    def finish_all(self, machine: Machine, moment: float) -> None:
        """Let everything be done that was under way with an instance that is gone."""
        for operation in self._unfinished.pop(machine.id, []):
            self.finish(operation, moment)
