"""An engine on virtual time, and everything around it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from proxy_operator.domain.condition import ConditionStatus, ConditionType, with_condition
from proxy_operator.domain.health import HealthReport
from proxy_operator.domain.proxy import Proxy, ProxyStatus
from proxy_operator.health.engine import HealthEngine, HealthSettings
from proxy_operator.health.ports import Ports
from proxy_operator.health.targets import TargetRules
from proxy_operator.runtime.clock import LoopClock
from proxy_operator.runtime.store import Store
from tests.builders import EPOCH, an_external
from tests.unit.health.fakes import (
    Bell,
    FakeCredentials,
    FakeEvents,
    FakeProber,
    FakeRecorder,
    bad_answer,
    ok,
)

TARGET = "http://target.example/"


class World:
    """An engine, and everything around it."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("targets", TargetRules(health_url=TARGET))
        self.store: Store[Proxy] = Store()
        self.prober = FakeProber()
        self.credentials = FakeCredentials()
        self.recorder = FakeRecorder()
        self.events = FakeEvents()
        self.clock = LoopClock(EPOCH)
        self.bell = Bell(self.clock.monotonic)
        self.engine = HealthEngine(
            self.store,
            Ports(self.prober, self.credentials, self.recorder, self.events),
            self.clock,
            HealthSettings(**settings),
        )
        self.engine.subscribe(self.bell)

    def add(self, name: str = "p1", host: str = "192.0.2.1", **fields: Any) -> Proxy:
        proxy = an_external(name, host, **fields)
        self.store.put(proxy)
        return proxy

    def edit(self, proxy: Proxy, **spec: Any) -> Proxy:
        changed = msgspec.structs.replace(
            proxy, spec=msgspec.structs.replace(proxy.spec, **spec), status=proxy.status
        )
        self.store.put(changed)
        return changed

    def restatus(self, proxy: Proxy, **status: Any) -> Proxy:
        draft = proxy.draft()
        for field, value in status.items():
            setattr(draft.status, field, value)
        self.store.put(draft)
        return draft

    def fleet(self, count: int, **fields: Any) -> list[Proxy]:
        """Add proxies that an earlier operator judged healthy."""
        hosts = [f"10.0.{n // 250}.{n % 250}" for n in range(count)]
        return [self.add(host, host, status=settled(host), **fields) for host in hosts]

    def fail(self, url: str = TARGET) -> None:
        """Let the target fail, for everybody."""
        self.prober.otherwise = self.prober.targets[url] = bad_answer()

    def recover(self, url: str = TARGET) -> None:
        self.prober.otherwise = self.prober.targets[url] = ok()

    async def until(self, question: Callable[[], object], within: float = 120) -> None:
        """Let time pass until the answer is truthy."""
        deadline = self.clock.monotonic() + within
        while not question():
            assert self.clock.monotonic() < deadline
            await asyncio.sleep(0.01)

    def unhealthy(self) -> list[str]:
        """Names of the proxies that were reported unhealthy last."""
        reports = {proxy.metadata.name: self.report(proxy) for proxy in self.store.list()}
        return [name for name, report in reports.items() if report and not report.is_healthy]

    def report(self, proxy: Proxy) -> HealthReport | None:
        return self.engine.report(proxy.metadata.uid)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.engine.run())
            await asyncio.sleep(0)
            try:
                yield
            finally:
                task.cancel()


def settled(
    host: str = "192.0.2.1",
    status: ConditionStatus = ConditionStatus.TRUE,
    reason: str = "ProbeSucceeded",
    **fields: Any,
) -> ProxyStatus:
    """The status of a proxy that an earlier operator judged."""
    fields.setdefault("latency_millis", 50)
    return ProxyStatus(
        ip=host,
        conditions=with_condition(
            (),
            ConditionType.HEALTHY,
            status=status,
            reason=reason,
            message="",
            observed_generation=1,
            now=EPOCH,
        ),
        **fields,
    )
