"""Doubles of what the health engine needs from outside."""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from proxy_operator.domain.event import EventKind
from proxy_operator.domain.health import ProbeError
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Credentials
from proxy_operator.health.ports import ProbeOutcome, ProbePhases, ProbeRequest, TargetRequest
from proxy_operator.runtime.objects import ObjectKey

BLACK_HOLE = "black hole"
Reply = ProbeOutcome | Exception | str


class Sent(NamedTuple):
    at: float
    request: ProbeRequest


class Asked(NamedTuple):
    at: float
    request: TargetRequest


def ok(millis: float = 50) -> ProbeOutcome:
    return ProbeOutcome(error=None, latency=timedelta(milliseconds=millis))


def failed(error: ProbeError = ProbeError.REFUSED, detail: str = "it failed") -> ProbeOutcome:
    return ProbeOutcome(error=error, detail=detail, latency=timedelta(milliseconds=1))


def bad_answer(detail: str = "the answer has status 503, not 2xx") -> ProbeOutcome:
    """What a proxy brings back from a target that fails."""
    return ProbeOutcome(
        error=ProbeError.STATUS,
        detail=detail,
        latency=timedelta(milliseconds=5),
        phases=ProbePhases(connect=0.001),
    )


class FakeProber:
    """Answers by host after the outcome's latency, as proxies do; `answers` is the world.

    Asked without a proxy, it answers by URL, from `targets`.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Reply] = {}
        self.otherwise: Reply = ok()
        self.targets: dict[str, Reply] = {}
        self.sent: list[Sent] = []
        self.asked: list[Asked] = []
        self.in_flight: defaultdict[str, int] = defaultdict(int)
        self.most_in_flight: defaultdict[str, int] = defaultdict(int)
        self.at_once = self.most_at_once = 0
        self.keeps_deadline = True

    async def probe(self, request: ProbeRequest) -> ProbeOutcome:
        host = request.host
        self.sent.append(Sent(asyncio.get_running_loop().time(), request))
        self.in_flight[host] += 1
        self.most_in_flight[host] = max(self.most_in_flight[host], self.in_flight[host])
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(self.answers.get(host, self.otherwise), request)
        finally:
            self.in_flight[host] -= 1
            self.at_once -= 1

    async def probe_directly(self, request: TargetRequest) -> ProbeOutcome:
        url = request.url
        self.asked.append(Asked(asyncio.get_running_loop().time(), request))
        self.in_flight[url] += 1
        self.most_in_flight[url] = max(self.most_in_flight[url], self.in_flight[url])
        try:
            return await self._answer(self.targets.get(url, ok()), request)
        finally:
            self.in_flight[url] -= 1

    async def _answer(self, answer: Reply, request: TargetRequest) -> ProbeOutcome:
        if isinstance(answer, str):
            await asyncio.sleep(request.timeout.total_seconds() if self.keeps_deadline else 1e6)
            return ProbeOutcome(
                error=ProbeError.TIMEOUT, detail="no answer", latency=request.timeout
            )
        if isinstance(answer, Exception):
            raise answer
        await asyncio.sleep(answer.latency.total_seconds())
        return answer

    def times(self, host: str) -> list[float]:
        return [sent.at for sent in self.sent if sent.request.host == host]

    def last(self, host: str) -> ProbeRequest:
        return next(sent.request for sent in reversed(self.sent) if sent.request.host == host)


class FakeCredentials:
    """Credentials by name of the Proxy; an error says what is wrong with them."""

    def __init__(self) -> None:
        self.known: dict[str, Credentials | ValueError] = {}
        self.readings = 0

    def credentials_for(self, proxy: Proxy) -> Credentials | None:
        self.readings += 1
        found = self.known.get(proxy.metadata.name)
        if isinstance(found, ValueError):
            raise found
        return found


class FakeRecorder:
    """Keeps what was measured, by key."""

    def __init__(self) -> None:
        self.probes: defaultdict[ObjectKey, list[ProbeOutcome]] = defaultdict(list)
        self.lags: list[timedelta] = []

    def probed(self, key: ObjectKey, outcome: ProbeOutcome, lag: timedelta) -> None:
        self.probes[key].append(outcome)
        self.lags.append(lag)

    def forgot(self, key: ObjectKey) -> None:
        self.probes.pop(key, None)


class FakeEvents:
    """Keeps Events in the order in which they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []
        """Name of the Proxy, reason, message."""

    def record(self, proxy: Proxy, event: EventKind, message: str) -> None:
        self.told.append((proxy.metadata.name, event.reason, message))


class Bell:
    """Takes notices while `accepts`, and notes the reader's view at that moment."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.accepts = True
        self.rung: list[tuple[float, ObjectKey]] = []
        self.refused: list[tuple[float, ObjectKey]] = []
        self._now = now

    def __call__(self, key: ObjectKey) -> bool:
        (self.rung if self.accepts else self.refused).append((self._now(), key))
        return self.accepts

    def times(self, name: str) -> list[float]:
        return [at for at, key in self.rung if key.name == name]
