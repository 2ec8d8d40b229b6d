"""One cloud project and the clusters that share it, each with its store and its processes.

What must never happen, at any moment, is noted here as it happens; `invariants` judges the end.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random
from typing import Any

from proxy_operator.adapters.providers.gcp.session import Document
from proxy_operator.domain.instance import decode_intent
from proxy_operator.domain.names import CLUSTER_LABEL, INTENT_ANNOTATION, UID_LABEL
from proxy_operator.domain.proxy import Proxy
from proxy_operator.provisioning.brake import BrakeLimits
from proxy_operator.runtime import verbs
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.objects import WatchEventType
from proxy_operator.testing.fake_objects import FakeObjectClient
from tests.builders import EPOCH
from tests.fakes.compute.conduct import Conduct
from tests.fakes.compute.faults import Faults
from tests.fakes.compute.ledger import Life
from tests.fakes.compute.machine import Machine
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.world import World as Cloud
from tests.gcp_worlds import A, B, InProcessSession
from tests.simulation.border import Line, SkewedClock
from tests.simulation.plan import Plan
from tests.simulation.process import Process

ZONES = (A, B)
_JUMP_MATTERS_S = 20 * 60.0


class SimulatedStore(FakeObjectClient):
    """A cluster's objects, with UIDs of its own; tells when one is gone."""

    def __init__(self, number: int, on_gone: Callable[[Any], None]) -> None:
        super().__init__(LoopClock(EPOCH), history_limit=100)
        self._number = number
        self._on_gone = on_gone

    @property
    def version(self) -> int:
        """Return a number that grows with every change."""
        return self._version

    def now_stored(self, kind: str) -> list[Any]:
        """Return the objects of a kind at this moment."""
        return [obj for (name, _), obj in sorted(self._objects.items()) if name == kind]

    def _stamp(self) -> verbs.Stamp:
        _, now = super()._stamp()
        return verbs.Stamp(f"00000000-0000-4000-a{self._number:03d}-{self._created:012d}", now)

    def _commit(self, row: Any, target: verbs.Target, decision: verbs.Decision) -> Any:
        obj = super()._commit(row, target, decision)
        if decision.event is WatchEventType.DELETED:
            self._on_gone(obj)
        return obj


class Universe:
    """All there is."""

    def __init__(self, plan: Plan) -> None:
        seed = plan.seed
        self.random = Random(f"deeds of {seed}")
        self.violations: list[str] = []
        self.excused = 0
        faults = Faults(random=Random(f"cloud of {seed}"))
        conduct = Conduct(request_memory=plan.request_memory)
        self.cloud = Cloud(LoopClock(EPOCH), conduct, faults)
        self.foreign: list[Machine] = []
        self.clusters = [Cluster(self, number, one) for number, one in enumerate(plan.limits)]
        self.group = asyncio.TaskGroup()
        self.restores: list[asyncio.TimerHandle] = []
        """Secrets that somebody will bring back."""

    def machine_at(self, zone: str, name: str) -> Machine | None:
        """Return an instance, one that nobody can see yet included."""
        self.cloud.now()
        return self.cloud._machines.get((PROJECT, zone, name))

    def life_at(self, zone: str, name: str) -> Life | None:
        """Return the life of the instance there, if it exists."""
        machine = self.machine_at(zone, name)
        return machine.life if machine else None

    def machines_of(self, cluster_id: str, uid: str | None = None) -> list[Machine]:
        """Return the instances with a cluster's label, accepted ones nobody can see included."""
        self.cloud.now()
        return [
            one
            for one in self.cloud._machines.values()
            if one.labels.get(CLUSTER_LABEL) == cluster_id
            and uid in {None, one.labels.get(UID_LABEL)}
        ]


class Cluster:
    """One cluster: its store, and one operator after another."""

    def __init__(self, universe: Universe, number: int, limits: BrakeLimits) -> None:
        self.universe = universe
        self.limits = limits
        self.cluster_id = f"cluster-{number}"
        self.clock = SkewedClock()
        self.line = Line(Random(f"line {number} of {universe.random.random()}"))
        self.store = SimulatedStore(number, self._look_at_gone)
        session = InProcessSession(Service(universe.cloud, checks_answers=False))
        self.session = session
        self.pause = 1.0
        self.processes: list[Process] = []
        self._jumped_at = float("-inf")

    @property
    def process(self) -> Process:
        """The newest process."""
        return self.processes[-1]

    @property
    def has_jumped_lately(self) -> bool:
        """Tell whether ages by this cluster's wall clock mean nothing at the moment."""
        now = self.universe.cloud.now()
        return bool(self.clock.skew) or now - self._jumped_at < _JUMP_MATTERS_S

    def proxies(self) -> list[Proxy]:
        """Return the Proxies that are stored now."""
        return self.store.now_stored("Proxy")

    def note(self, what: str) -> None:
        """Note what must never happen."""
        now = self.universe.cloud.now()
        self.universe.violations.append(
            f"at {timedelta(seconds=int(now))} {self.cluster_id}: {what}"
        )

    def jump(self, skew: timedelta) -> None:
        """Let the wall clock show another time."""
        self.clock.skew = skew
        self._jumped_at = self.universe.cloud.now()

    async def live(self) -> None:
        """Run one process after the other for ever."""
        while True:
            process = Process(self)
            self.processes = [*(p for p in self.processes if not p.gate.cut.is_set()), process]
            self.universe.group.create_task(process.run())
            await process.superseded.wait()
            await asyncio.sleep(self.pause)

    def kill(self) -> None:
        """End every process, now."""
        for process in self.processes:
            process.gate.cut.set()

    def watch_of(
        self, process: Process
    ) -> Callable[[str, str, Mapping[str, str], Document | None], None]:
        """Return who looks at every request of a process."""

        def watch(method: str, path: str, query: Mapping[str, str], body: Document | None) -> None:
            if method == "POST" and body is not None and process.fence.is_open:
                self._look_at_insert(body, query.get("requestId", ""))
            if method == "DELETE":
                self._look_at_delete(path)

        return watch

    def _look_at_insert(self, body: Document, request_id: str) -> None:
        uid = body["labels"][UID_LABEL]
        owner = next((p for p in self.proxies() if p.metadata.uid == uid), None)
        if owner is None:
            self.note(f"insert for {uid}, whose Proxy is gone")
            return
        intent = decode_intent(owner.metadata.annotations.get(INTENT_ANNOTATION))
        if intent is None or intent.request_id != request_id:
            self.note(f"insert for {owner.metadata.name} that no stored intent speaks of")

    def _look_at_delete(self, path: str) -> None:
        _, _, rest = path.partition("/zones/")
        zone, _, name = rest.split("/")
        machine = self.universe.machine_at(zone, name)
        if machine is not None and machine.labels.get(CLUSTER_LABEL) != self.cluster_id:
            self.note(f"delete of the foreign instance {name} in {zone}")

    def _look_at_gone(self, obj: Any) -> None:
        if not isinstance(obj, Proxy):
            return
        left = self.universe.machines_of(self.cluster_id, obj.metadata.uid)
        left = [m for m in left if m.life is None or m.life.birth == "insert"]
        if not left:
            return
        if self.has_jumped_lately:
            self.universe.excused += 1
            return
        self.note(f"Proxy {obj.metadata.name} is gone and leaves {[m.path for m in left]}")
