"""What exists and what happens: instances, operations, and the passing of time.

No I/O and no sleeping: every method first does what has become due since the last one. What others
do to it is in `strangers`; how it answers over REST is the service's.
"""

import itertools
from collections.abc import Mapping
from typing import Any

from proxy_operator.runtime.clock import Clock
from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.faults import FailOperation, Faults
from tests.fakes.compute.ledger import Birth, Delete, End, Insert, Ledger, Life
from tests.fakes.compute.machine import Machine
from tests.fakes.compute.messages import RefusedError
from tests.fakes.compute.operation import Operation
from tests.fakes.compute.operation_book import OperationBook
from tests.fakes.compute.refusals import already_exists, invalid, not_found, quota_exceeded
from tests.fakes.compute.requirements import require_possible, require_request_id
from tests.fakes.compute.timeline import Timeline


class World:
    """One cloud. Tests set `conduct` and `faults`, and read `ledger` and `machines()`."""

    def __init__(
        self, clock: Clock, conduct: Conduct | None = None, faults: Faults | None = None
    ) -> None:
        self.conduct = conduct or Conduct()
        self.faults = faults or Faults()
        self.ledger = Ledger()
        self.timeline = Timeline(clock)
        self._operations = OperationBook(self.timeline)
        self._machines: dict[tuple[str, str, str], Machine] = {}
        self._numbers = itertools.count(10_001)
        self._addresses = itertools.count(1)

    def now(self) -> float:
        """Let happen what is due, and return this moment."""
        return self.timeline.now()

    def machines(self, project: str | None = None) -> list[Machine]:
        """Return what a reader can see, by zone and name."""
        self.now()
        seen = (one for one in self._machines.values() if one.is_visible)
        wanted = (one for one in seen if project in {None, one.project})
        return sorted(wanted, key=lambda one: (one.zone, one.name))

    def find(self, project: str, zone: str, name: str) -> Machine:
        """Return one instance by its name or number. RefusedError 404 when nobody can see it."""
        self.now()
        machine = self._machines.get((project, zone, name))
        if machine is None and name.isdigit():
            here = (one for one in self._machines.values() if one.key[:2] == (project, zone))
            machine = next((one for one in here if one.id == name), None)
        if machine is None or not machine.is_visible:
            raise not_found(f"projects/{project}/zones/{zone}/instances/{name}")
        return machine

    def operation(self, project: str, zone: str, name: str) -> Operation:
        """Return an operation by its name or number. RefusedError 404 when there is none."""
        self.now()
        return self._operations.find((project, zone), name)

    def insert(
        self,
        place: tuple[str, str],
        body: Mapping[str, Any],
        request_id: str = "",
        doom: FailOperation | None = None,
    ) -> Operation:
        """Accept an instance, or answer what the same request id was answered. RefusedError.

        `place` is project and zone; `doom` is how the operation will fail.
        """
        now = self.now()
        machine = Machine(self._new_id(), *place, body["name"], body)
        earlier = self._earlier("insert", machine.key, request_id, now)
        if earlier is not None:
            return earlier
        require_possible(self.conduct, machine.zone, body)
        if machine.key in self._machines:
            raise already_exists(machine.path)
        doom = doom or self._shortage(machine)
        self._machines[machine.key] = machine
        labels = dict(machine.labels)
        self.ledger.inserts.append(Insert(now, request_id, machine.id, *machine.key, labels))
        operation = self._operations.begin("insert", machine, request_id, now)
        if doom is None or doom.is_seen:
            self._plan_appearance(operation, now)
        if doom is None:
            self._plan_run(operation, now)
        else:
            self._plan_failure(operation, now, doom)
        return operation

    def delete(self, project: str, zone: str, name: str, request_id: str = "") -> Operation:
        """Begin to end an instance, or go on ending it. RefusedError 404 when there is none."""
        now = self.now()
        earlier = self._earlier("delete", (project, zone, name), request_id, now)
        if earlier is not None:
            return earlier
        machine = self.find(project, zone, name)
        if not machine.is_ending:
            labels = dict(machine.labels)
            self.ledger.deletes.append(Delete(now, request_id, machine.id, *machine.key, labels))
            self.end(machine, now, "delete")
        return self._operations.begin("delete", machine, request_id, now)

    def add(
        self, project: str, zone: str, body: Mapping[str, Any], birth: Birth, moment: float
    ) -> Machine:
        """Let an instance exist that nobody asked this API for. RefusedError 409."""
        machine = Machine(self._new_id(), project, zone, body["name"], body)
        if machine.key in self._machines:
            raise already_exists(machine.path)
        self._machines[machine.key] = machine
        self._appear(machine, moment, birth)
        return machine

    def run(self, machine: Machine, moment: float) -> None:
        """Let an instance run, and have its address after the usual while."""
        machine.status = "RUNNING"
        machine.started_at = self.timeline.stamp(moment)
        due = moment + self.conduct.timing.nat_ip.total_seconds()
        self.timeline.at(due, lambda _: self._give_address(machine))

    def end(self, machine: Machine, moment: float, end: End) -> None:
        """Stop an instance; it is gone after the time that takes."""
        machine.status, machine.is_ending = "STOPPING", True
        due = moment + self.conduct.timing.stop.total_seconds()
        self.timeline.at(due, lambda at: self.remove(machine, at, end))

    def remove(self, machine: Machine, moment: float, end: End) -> None:
        """Let an instance be gone, and its name be free. Twice is as once."""
        if machine.is_gone:
            return
        machine.is_gone = True
        del self._machines[machine.key]
        if machine.life is not None:
            machine.life.gone_at, machine.life.end = moment, end
        self._operations.finish_all(machine, moment)

    def new_address(self) -> str:
        """Return an external address that nothing has had, until they run out."""
        number = next(self._addresses) % (250 * 250)
        return f"{self.conduct.ip_prefix}.{number // 250}.{number % 250 + 1}"

    def _new_id(self) -> str:
        return str(next(self._numbers))

    def _earlier(
        self, kind: str, key: tuple[str, str, str], request_id: str, now: float
    ) -> Operation | None:
        """Return the operation that this request id has begun already. RefusedError."""
        require_request_id(request_id)
        memory = self.conduct.request_memory
        earlier = self._operations.of_request(key[0], request_id, now, memory)
        if earlier is not None and (earlier.kind, earlier.machine.key) != (kind, key):
            self.ledger.violations.append(f"request id {request_id} used for two things")
            raise invalid("requestId", "it was used for another request")
        return earlier

    def _shortage(self, machine: Machine) -> FailOperation | None:
        """Return how an insert fails for want of room. RefusedError when that is said at once."""
        conduct = self.conduct
        own = sum(1 for one in self._machines.values() if one.project == machine.project)
        if conduct.quota is not None and own >= conduct.quota:
            if conduct.quota_is_said_by == "insert":
                raise quota_exceeded(conduct.quota)
            return FailOperation("QUOTA_EXCEEDED", conduct.timing.fails)
        room = conduct.zones[machine.zone]
        here = sum(1 for one in self._machines.values() if one.zone == machine.zone)
        if room is not None and here >= room:
            return FailOperation("ZONE_RESOURCE_POOL_EXHAUSTED", conduct.timing.fails)
        return None

    def _appear(self, machine: Machine, moment: float, birth: Birth, request_id: str = "") -> None:
        """Let an instance exist, and cost money, from this moment."""
        machine.created_at = self.timeline.stamp(moment)
        labels = dict(machine.labels)
        machine.life = Life(machine.id, *machine.key, labels, birth, request_id, moment)
        self.ledger.lives.append(machine.life)

    def _plan_appearance(self, operation: Operation, now: float) -> None:
        machine, request_id = operation.machine, operation.request_id
        due = now + self.conduct.timing.appears.total_seconds()
        self.timeline.at(due, lambda at: self._appear(machine, at, "insert", request_id))

    def _plan_run(self, operation: Operation, now: float) -> None:
        machine, timing = operation.machine, self.conduct.timing

        def stage(_: float) -> None:
            if machine.status == "PROVISIONING":
                machine.status = "STAGING"

        def run(moment: float) -> None:
            if machine.status == "STAGING":
                self.run(machine, moment)
            self._operations.finish(operation, moment)

        self.timeline.at(now + timing.stages.total_seconds(), stage)
        self.timeline.at(now + timing.runs.total_seconds(), run)

    def _plan_failure(self, operation: Operation, now: float, doom: FailOperation) -> None:
        def fail(moment: float) -> None:
            self._operations.finish(operation, moment, doom.code)
            self.remove(operation.machine, moment, "stock-out")

        self.timeline.at(now + doom.after.total_seconds(), fail)

    def _give_address(self, machine: Machine) -> None:
        has_access = any(one.get("accessConfigs") for one in machine.body["networkInterfaces"])
        if has_access and machine.nat_ip is None and machine.status == "RUNNING":
            machine.nat_ip = self.new_address()


def require_place(conduct: Conduct, project: str, zone: str = "") -> None:
    """RefusedError when there is no such project, or no such zone."""
    if project not in conduct.projects:
        raise not_found(f"projects/{project}")
    if zone and zone not in conduct.zones:
        raise RefusedError(
            400, "invalid", f"Invalid value for field 'zone': '{zone}'. Unknown zone."
        )
