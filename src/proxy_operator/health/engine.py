"""Probes every proxy in its rhythm and tells the reconciler when a verdict changes.

State is keyed by UID and lives only while a proxy has an address, a target and no deletion mark:
whatever comes back after that starts anew. All of it is touched from the loop only, and nothing
awaits between reading and changing it.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from proxy_operator.domain.allow_list import AllowList
from proxy_operator.domain.health import HealthReport, ProbeError
from proxy_operator.domain.proxy import Proxy
from proxy_operator.health import schedule, verdict
from proxy_operator.health.board import HealthBoard, Notify
from proxy_operator.health.check import Check, read_check
from proxy_operator.health.guards import Guards, Weight
from proxy_operator.health.inquiry import Inquirer
from proxy_operator.health.ports import LocalProbeError, Ports, ProbeOutcome
from proxy_operator.health.schedule import Schedule
from proxy_operator.health.targets import TargetRules, target_of
from proxy_operator.health.verdict import Record
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.objects import key_of
from proxy_operator.runtime.store import Store, StoreEvent

logger = logging.getLogger(__name__)

# Timers of event loops are no finer than this, in seconds: a probe so little early is on time,
# and waiting out the rest would only spin.
EARLY = 0.001


class HealthSettings(NamedTuple):
    """What an operator of the operator may tune."""

    workers: int = 100
    """Probes under way at once (`--probe-workers`)."""
    targets: TargetRules = TargetRules()
    allowed: AllowList = AllowList()
    min_report_interval: timedelta = timedelta(seconds=60)
    """Least time between two reports of an unchanged verdict."""


class _Watched:
    """One proxy under watch."""

    __slots__ = ("is_newcomer", "key", "probe", "proxy", "record", "uid")

    def __init__(self, proxy: Proxy, record: Record) -> None:
        self.uid = proxy.metadata.uid
        self.key = key_of(proxy)
        self.proxy = proxy
        self.record = record
        self.is_newcomer = True
        """Not probed yet, and not spread over the interval yet."""
        self.probe: asyncio.Task[None] | None = None
        """The probe under way; there is never a second one."""


class HealthEngine:
    """Owns health state. Answers the reconciler through `report` and `has_target`."""

    def __init__(
        self,
        proxies: Store[Proxy],
        ports: Ports,
        clock: Clock,
        settings: HealthSettings,
    ) -> None:
        self._proxies = proxies
        self._clock = clock
        self._recorder = ports.recorder
        self._settings = settings
        self._inquirer = Inquirer(
            ports.prober, ports.credentials, clock, settings.targets, settings.allowed
        )
        self._guards = Guards(self._inquirer, ports.events, clock, settings.targets, self)
        self._board = HealthBoard()
        self._schedule = Schedule()
        self._watched: dict[str, _Watched] = {}
        self._in_flight = 0
        self._wake = asyncio.Event()
        self._is_running = False

    def subscribe(self, notify: Notify) -> None:
        """Name who is told of changed verdicts: usually the proxy controller's queue."""
        self._board.subscribe(notify)

    def report(self, uid: str) -> HealthReport | None:
        """Return the verdict last told since the start, or None."""
        return self._board.report(uid)

    def has_target(self, proxy: Proxy) -> bool:
        """Tell whether there is anything to probe this proxy against."""
        return target_of(proxy, self._settings.targets) is not None

    def holding(self) -> dict[str, bool]:
        """Tell by label of each probe target in use whether it is taken for the one at fault."""
        return self._guards.holding()

    def excuse(self, uids: Iterable[str]) -> None:
        """Take back the failures that were counted of these healthy proxies."""
        for watched in map(self._watched.__getitem__, uids):
            if watched.record.verdict:
                watched.record = verdict.excuse(watched.record)

    def settle(self, uids: Iterable[str]) -> None:
        """Draw the conclusions that were held back of these proxies."""
        for watched in map(self._watched.__getitem__, uids):
            watched.record = verdict.settle(watched.record, _check(watched.proxy).thresholds)
            self._report(watched)

    async def run(self) -> None:
        """Probe until cancelled; call once, when this process leads and the store is filled.

        Stopping drops the probes under way and judges nothing.
        """
        self._is_running = True
        self._proxies.add_handler(self._on_change)
        try:
            async with asyncio.TaskGroup() as group:
                self._guards.open(group)
                try:
                    while True:
                        self._start_due(group)
                        await self._sleep()
                finally:
                    # Before the group ends: it takes no more questions then.
                    self._guards.close()
        finally:
            self._is_running = False

    def _on_change(self, event: StoreEvent[Proxy]) -> None:
        if not self._is_running:
            return
        old, new = event.old, event.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(old.metadata.uid)
        if new is not None:
            self._follow(new)

    def _follow(self, proxy: Proxy) -> None:
        uid = proxy.metadata.uid
        if proxy.address is None or proxy.metadata.is_deleting or not self.has_target(proxy):
            self._forget(uid)
            return
        watched = self._watched.get(uid)
        if watched is None:
            self._watch(proxy, self._seed(proxy))
        elif _identity(watched.proxy) != _identity(proxy):
            # Another instance, or another address: nothing known of the old one holds for it.
            self._forget(uid)
            self._watch(proxy, Record())
        else:
            is_edited = _settings(watched.proxy) != _settings(proxy)
            watched.proxy = proxy
            if is_edited:
                self._guards.follow(proxy, is_healthy=watched.record.verdict is True)
                self._hurry(watched)

    def _seed(self, proxy: Proxy) -> Record:
        host, port = proxy.address or ("", 0)
        # A condition speaks of the address beside it; an endpoint edited while no operator ran
        # has not been judged by anybody.
        if proxy.status.ip != host or proxy.status.port not in {None, port}:
            return Record()
        return verdict.seed(proxy.status, self._clock.monotonic())

    def _watch(self, proxy: Proxy, record: Record) -> None:
        watched = self._watched[proxy.metadata.uid] = _Watched(proxy, record)
        self._guards.follow(proxy, is_healthy=record.verdict is True)
        now = self._clock.monotonic()
        is_denied = record.error is ProbeError.NOT_ALLOWED
        # The lists may be others than those of the operator that gave the verdict.
        if record.verdict is None or is_denied or self._settings.allowed.restricts(proxy):
            self._schedule.put(watched.uid, self._schedule.newcomer_slot(now))
        else:
            interval = _check(proxy).interval.total_seconds()
            watched.is_newcomer = False
            self._schedule.put(watched.uid, now + interval * schedule.jitter(watched.uid))
        self._wake.set()

    def _forget(self, uid: str) -> None:
        watched = self._watched.pop(uid, None)
        if watched is None:
            return
        self._guards.forget(uid)
        self._schedule.remove(uid)
        self._board.forget(uid)
        self._recorder.forgot(watched.key)
        if watched.probe is not None:
            watched.probe.cancel()

    def _hurry(self, watched: _Watched) -> None:
        """Let an edit show at once: what was asked before it no longer matters."""
        if watched.probe is not None:
            watched.probe.cancel()
            watched.probe = None
        slot = self._schedule.newcomer_slot(self._clock.monotonic())
        due_at = self._schedule.due_at(watched.uid)
        watched.is_newcomer = True
        self._schedule.put(watched.uid, slot if due_at is None else min(slot, due_at))
        self._wake.set()

    def _start_due(self, group: asyncio.TaskGroup) -> None:
        now = self._clock.monotonic()
        while self._in_flight < self._settings.workers and (due := self._schedule.pop(now + EARLY)):
            watched = self._watched[due.uid]
            lag = timedelta(seconds=max(0.0, now - due.at))
            task = group.create_task(self._probe(watched, lag))
            watched.probe = task
            self._in_flight += 1
            # A callback, because a task cancelled before its first step runs no `finally`.
            task.add_done_callback(partial(self._finish, watched, due.at))

    def _finish(self, watched: _Watched, due_at: float, task: asyncio.Task[None]) -> None:
        self._in_flight -= 1
        self._wake.set()
        if watched.probe is not task or self._watched.get(watched.uid) is not watched:
            return
        watched.probe = None
        interval = _check(watched.proxy).interval
        if watched.record.verdict is None:
            # Nobody knows yet what it is good for: ask again soon.
            at = self._clock.monotonic() + min(interval, schedule.UNJUDGED).total_seconds()
        elif watched.is_newcomer:
            watched.is_newcomer = False
            at = schedule.second(due_at, watched.uid, interval)
        else:
            at = schedule.following(due_at, self._clock.monotonic(), interval)
        self._schedule.put(watched.uid, at)

    async def _sleep(self) -> None:
        """Wait until a proxy is due and a worker free, or until something changed."""
        self._wake.clear()
        at = self._schedule.next_at() if self._in_flight < self._settings.workers else None
        if at is None:
            await self._wake.wait()
            return
        delay = max(0.0, at - self._clock.monotonic())
        alarm = asyncio.get_running_loop().call_later(delay, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            alarm.cancel()

    async def _probe(self, watched: _Watched, lag: timedelta) -> None:
        began_at = self._clock.monotonic()
        try:
            outcome, is_sent = await self._inquirer.ask(watched.proxy)
            if is_sent:
                self._recorder.probed(watched.key, outcome, lag)
            self._judge(watched, outcome, began_at)
        except LocalProbeError as err:
            logger.warning("could not probe from here: %s", err, extra={"proxy": str(watched.key)})
        except Exception:  # the engine outlives a fault in one probe, which says nothing of a proxy
            logger.exception("a probe broke", extra={"proxy": str(watched.key)})

    def _judge(self, watched: _Watched, outcome: ProbeOutcome, began_at: float) -> None:
        before, weight = watched.record, Weight.FULL
        if before.verdict and outcome.error is not None:
            weight = self._guards.weigh(watched.proxy, outcome, began_at)
        watched.record = verdict.observe(
            verdict.excuse(before) if weight is Weight.FIRST else before,
            outcome,
            _check(watched.proxy).thresholds,
            is_held=weight is Weight.HELD,
        )
        self._guards.note(watched.proxy, outcome, before, watched.record)
        self._report(watched)

    def _report(self, watched: _Watched) -> None:
        now, record = self._clock.monotonic(), watched.record
        thresholds = _check(watched.proxy).thresholds
        cause = verdict.cause_to_report(record, thresholds, now, self._settings.min_report_interval)
        if cause is None:
            return
        report = verdict.report_of(record, self._clock.now())
        # Refused: the marker stays, and the next probe finds the same cause.
        if self._board.publish(watched.key, watched.uid, report):
            watched.record = verdict.mark(record, now)
            logger.info(
                "health reported: %s",
                cause.value,
                extra={"proxy": str(watched.key), "healthy": report.is_healthy},
            )


def _check(proxy: Proxy) -> Check:
    return read_check(proxy.spec.health_check)


def _identity(proxy: Proxy) -> tuple[object, ...]:
    return proxy.address, proxy.status.provider_id


def _settings(proxy: Proxy) -> tuple[object, ...]:
    spec = proxy.spec
    return spec.health_check, spec.scheme, spec.credentials_secret_ref
