"""The guards of all targets in use: they ask a target itself when its proxies fail, and say so.

What to do is decided in `guard`; here it is done. The rule: nothing awaits between reading and
changing a guard, and all of it is touched from the loop only.
"""

import asyncio
import logging
from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple, Protocol

from proxy_operator.domain.proxy import Proxy
from proxy_operator.health.check import read_check
from proxy_operator.health.guard import (
    LEAST,
    Answer,
    Change,
    Facts,
    Guard,
    Stage,
    is_mass_failure,
    is_stale,
    is_target_side,
    keeps,
    next_moment,
    step,
)
from proxy_operator.health.inquiry import Inquirer
from proxy_operator.health.notices import Notices
from proxy_operator.health.ports import EventRecorder, LocalProbeError, ProbeOutcome
from proxy_operator.health.standings import Pace, Standings
from proxy_operator.health.targets import TargetRules, label_of, target_of
from proxy_operator.health.verdict import Record
from proxy_operator.runtime.clock import Clock

logger = logging.getLogger(__name__)


class Weight(Enum):
    """What a failed probe of a healthy proxy counts."""

    FULL = auto()
    HELD = auto()
    """It is counted, and the verdict stays."""
    FIRST = auto()
    """The failures before it were the target's, this one is the proxy's own."""


class Verdicts(Protocol):
    """Whose verdicts are guarded."""

    def excuse(self, uids: Iterable[str]) -> None:
        """Take back the failures that were counted of these proxies."""

    def settle(self, uids: Iterable[str]) -> None:
        """Draw the conclusions that were held back of these proxies."""


class TargetKey(NamedTuple):
    """What is asked of proxies: the URL, and the status it must have."""

    url: str
    expected_status: int | None


class _Watch:
    """One target in use."""

    def __init__(self, key: TargetKey, events: EventRecorder) -> None:
        self.key = key
        self.label = label_of(key.url)
        self.notices = Notices(self.label, events)
        self.guard = Guard()
        self.standings = Standings()
        self.question: asyncio.Task[None] | None = None
        self.alarm: asyncio.TimerHandle | None = None
        self.alarm_at: float | None = None

    def stop(self) -> None:
        """End what is under way."""
        if self.question is not None:
            self.question.cancel()
            self.question = None
        self.silence()

    def silence(self) -> None:
        """Call the alarm off."""
        if self.alarm is not None:
            self.alarm.cancel()
        self.alarm = self.alarm_at = None


class Guards:
    """Guards by target."""

    def __init__(
        self,
        inquirer: Inquirer,
        events: EventRecorder,
        clock: Clock,
        targets: TargetRules,
        verdicts: Verdicts,
    ) -> None:
        self._inquirer = inquirer
        self._events = events
        self._clock = clock
        self._targets = targets
        self._verdicts = verdicts
        self._group: asyncio.TaskGroup | None = None
        self._watches: dict[TargetKey, _Watch] = {}
        self._by_uid: dict[str, _Watch] = {}

    def open(self, group: asyncio.TaskGroup) -> None:
        """Ask targets in this group from now on."""
        self._group = group

    def close(self) -> None:
        """Stop all that is under way, and forget everybody."""
        for watch in self._watches.values():
            watch.stop()
        self._watches.clear()
        self._by_uid.clear()
        self._group = None

    def holding(self) -> dict[str, bool]:
        """Tell by label of each target in use whether verdicts are held.

        Targets of too few proxies to be ever guarded are left out.
        """
        now, held = self._clock.monotonic(), dict[str, bool]()
        for watch in self._watches.values():
            if len(watch.standings) >= LEAST:
                is_held = watch.guard.stage is Stage.HOLDING and now < watch.guard.ends_at
                held[watch.label] = held.get(watch.label, False) or is_held
        return held

    def follow(self, proxy: Proxy, *, is_healthy: bool) -> None:
        """Count a proxy among those of its target, which may be another one than before.

        `is_healthy` counts for who is new to the target; of the others more is known.
        """
        uid, key = proxy.metadata.uid, self._key(proxy)
        check = read_check(proxy.spec.health_check)
        pace = Pace(check.interval, check.timeout)
        watch = self._by_uid.get(uid)
        if watch is not None and watch.key == key:
            watch.standings.put(uid, pace)
            return
        self.forget(uid)
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(key, self._events)
        self._by_uid[uid] = watch
        watch.standings.put(uid, pace)
        watch.standings.note(uid, is_healthy=is_healthy)
        self._step(watch)

    def forget(self, uid: str) -> None:
        """Drop a proxy, and its target with the last one. Unknown ones are ignored."""
        watch = self._by_uid.pop(uid, None)
        if watch is None:
            return
        watch.standings.remove(uid)
        watch.notices.forget(uid)
        if len(watch.standings):
            self._step(watch)
            return
        watch.stop()
        del self._watches[watch.key]

    def weigh(self, proxy: Proxy, outcome: ProbeOutcome, began_at: float) -> Weight:
        """Tell what a failed probe of a healthy proxy counts. Call `note` after."""
        uid = proxy.metadata.uid
        watch = self._by_uid[uid]
        if not is_target_side(outcome):
            was_targets = uid in watch.standings.failing
            return Weight.FIRST if was_targets and self._keeps(watch, began_at) else Weight.FULL
        if not is_stale(watch.guard, began_at):
            watch.standings.note_failure(uid, proxy)
            self._step(watch)
        return Weight.HELD if self._keeps(watch, began_at) else Weight.FULL

    def note(self, proxy: Proxy, outcome: ProbeOutcome, before: Record, after: Record) -> None:
        """Count how any probe left a proxy."""
        uid = proxy.metadata.uid
        watch = self._by_uid[uid]
        if before.verdict and is_target_side(outcome):
            return  # counted when it was weighed
        if outcome.error is not None:
            watch.standings.passes = 0
        elif before.failures > 0:
            watch.standings.passes += 1
        watch.standings.note(uid, is_healthy=after.verdict is True)
        self._step(watch)

    def _key(self, proxy: Proxy) -> TargetKey:
        url = target_of(proxy, self._targets)
        if url is None:
            raise LookupError("a proxy without a target has no guard")
        return TargetKey(url, proxy.spec.health_check.expected_status)

    def _keeps(self, watch: _Watch, began_at: float) -> bool:
        return keeps(watch.guard, self._clock.monotonic(), began_at)

    def _step(
        self,
        watch: _Watch,
        answer: Answer | None = None,
        why: str = "",
        now: float | None = None,
    ) -> None:
        standings, guard = watch.standings, watch.guard
        is_suspect = is_mass_failure(standings.healthy, len(standings.failing))
        # Nearly always: nothing more than counting.
        if guard.stage is Stage.QUIET and not guard.is_asking and not is_suspect:
            return
        facts = Facts(
            now=self._clock.monotonic() if now is None else now,
            interval=standings.pace.interval.total_seconds(),
            healthy=standings.healthy,
            failing=len(standings.failing),
            passes=standings.passes,
            answer=answer,
        )
        watch.guard, change = step(guard, facts)
        if change is not None:
            self._carry_out(watch, change, why)
        self._set_alarm(watch)

    def _carry_out(self, watch: _Watch, change: Change, why: str) -> None:
        failing = list(watch.standings.failing)
        watch.notices.say(change, watch.standings, why)
        if change is Change.ASK:
            self._ask(watch)
        elif change is Change.NOT_HELD:
            self._verdicts.settle(failing)
        elif change is Change.HELD:
            watch.standings.passes = 0
        else:
            watch.stop()
            if change is Change.RECOVERED:
                watch.standings.forgive()
                self._verdicts.excuse(failing)

    def _set_alarm(self, watch: _Watch) -> None:
        at = next_moment(watch.guard, watch.standings.pace.interval.total_seconds())
        if at == watch.alarm_at:
            return
        watch.silence()
        if at is not None:
            delay = max(0.0, at - self._clock.monotonic())
            loop = asyncio.get_running_loop()
            watch.alarm = loop.call_later(delay, self._ring, watch, at)
            watch.alarm_at = at

    def _ring(self, watch: _Watch, at: float) -> None:
        watch.silence()
        # Timers may ring a little early; waiting out the rest would only spin.
        self._step(watch, now=max(at, self._clock.monotonic()))

    def _ask(self, watch: _Watch) -> None:
        if self._group is None:
            raise RuntimeError("the guards are not open")
        watch.question = self._group.create_task(self._put_question(watch))

    async def _put_question(self, watch: _Watch) -> None:
        answer, why = Answer.UNKNOWN, "it could not be asked"
        # In the name of one that just failed: the lists that let it be probed let this be asked.
        proxy = next(iter(watch.standings.failing.values()), None)
        try:
            if proxy is not None:
                outcome, is_sent = await self._inquirer.ask_target(
                    proxy, watch.standings.pace.timeout
                )
                why = f"{outcome.error}: {outcome.detail}" if outcome.error else "it answers"
                if is_sent:
                    answer = Answer.WELL if outcome.error is None else Answer.FAILS
        except LocalProbeError as err:
            logger.warning("could not ask from here: %s", err, extra={"target": watch.label})
        except Exception:  # the engine outlives a fault in here, which says nothing of a target
            logger.exception("asking a target broke", extra={"target": watch.label})
        watch.question = None
        self._step(watch, answer, why)
