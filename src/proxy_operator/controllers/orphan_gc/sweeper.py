"""The sweep: list instances, then Proxies, uncached; delete what is proven to be an orphan."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from proxy_operator.controllers.orphan_gc.plan import Grounds, Kill, plan_kills
from proxy_operator.controllers.ports import (
    EventRecorder,
    ProviderRegistry,
    SweepRecorder,
    SweepResult,
)
from proxy_operator.domain.event import ORPHAN_DELETED
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.proxy import Proxy, ProxySpec
from proxy_operator.provisioning.contract import InstanceList, Provider
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.clock import Clock
from proxy_operator.runtime.errors import ObjectError
from proxy_operator.runtime.objects import ObjectReader

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SweepSettings:
    """When and what to sweep."""

    cluster_id: str
    interval: timedelta = timedelta(minutes=10)
    min_age: timedelta = timedelta(minutes=10)
    is_dry_run: bool = False
    namespace: str | None = None
    """Where Proxies may be listed; None is everywhere.

    With a namespace, nobody else may have this cluster id: their instances would be orphans here.
    """


class _Listed(NamedTuple):
    name: str
    provider: Provider
    found: InstanceList


class OrphanSweeper:
    """Deletes orphans, once an interval. Destructive: run it only where this process leads."""

    def __init__(
        self,
        reader: ObjectReader,
        providers: ProviderRegistry,
        events: EventRecorder,
        clock: Clock,
        recorder: SweepRecorder,
        settings: SweepSettings,
    ) -> None:
        self._reader = reader
        self._providers = providers
        self._events = events
        self._clock = clock
        self._recorder = recorder
        self._settings = settings

    async def run(self) -> None:
        """Sweep for ever; the first time a full interval after the start."""
        for name, _ in (*self._providers.available(), *self._providers.unusable()):
            self._recorder.swept_from_now(name)
        while True:
            await asyncio.sleep(self._settings.interval.total_seconds())
            await self.sweep()

    async def sweep(self) -> int:
        """Delete what is proven to be an orphan; return how many were asked to go."""
        listed = await self._list_instances()
        if not listed:
            return 0
        try:
            proxies = await self._reader.list(Proxy, namespace=self._settings.namespace)
        except ObjectError as err:
            logger.warning("sweep skipped: proxies cannot be listed", extra={"error": str(err)})
            for one in listed:
                self._recorder.swept(one.name, SweepResult.FAILED, self._clock.now())
            return 0
        grounds = Grounds(
            self._settings.cluster_id,
            self._settings.min_age,
            self._clock.now(),
            frozenset(proxies.unreadable),
        )
        killed = 0
        for one in listed:
            kills = plan_kills(one.found.items, proxies.items, one.provider, grounds)
            killed += await self._kill_all(one, kills)
        return killed

    async def _list_instances(self) -> list[_Listed]:
        listed = []
        for name, provider in self._providers.available():
            try:
                found = await provider.list_by_tag()
            except ProviderError as err:
                self._skip(name, err)
                continue
            if not found.complete:
                logger.warning("the list of instances is incomplete", extra={"provider": name})
            listed.append(_Listed(name, provider, found))
        for name, missing in self._providers.unusable():
            self._skip(name, missing)
        return listed

    def _skip(self, name: str, err: ProviderError) -> None:
        logger.warning(
            "sweep skips a provider: its instances cannot be listed",
            extra={"provider": name, "error": str(err)},
        )
        self._recorder.swept(name, SweepResult.FAILED, self._clock.now())

    async def _kill_all(self, listed: _Listed, kills: Sequence[Kill]) -> int:
        """Kill what is to be killed at one provider; return how many were asked to go."""
        killed = 0
        for kill in kills:
            killed += await self._kill(listed.name, listed.provider, kill)
        self._recorder.orphans_left(listed.name, len(kills) - killed)
        is_whole = listed.found.complete
        result = SweepResult.SUCCESS if is_whole else SweepResult.INCOMPLETE
        self._recorder.swept(listed.name, result, self._clock.now())
        return killed

    async def _kill(self, name: str, provider: Provider, kill: Kill) -> bool:
        fields = {
            "provider": name,
            "provider_id": kill.instance.provider_id,
            "proxy_uid": kill.uid,
            "why": kill.why,
        }
        if self._settings.is_dry_run:
            logger.warning("an orphan would be deleted (dry run)", extra=fields)
            return False
        try:
            await provider.delete(kill.instance.provider_id)
        except ProviderError as err:
            logger.warning("an orphan could not be deleted", extra={**fields, "error": str(err)})
            return False
        self._recorder.orphan_deleted(name)
        logger.warning("an orphan is deleted", extra=fields)
        self._events.record(
            kill.owner or _stand_in(kill),
            ORPHAN_DELETED,
            f"instance {kill.instance.provider_id} at {name} is deleted: {kill.why}",
        )
        return True


def _stand_in(kill: Kill) -> Proxy:
    """Name the Proxy that is no more, so that an Event can be about it."""
    name = kill.instance.provider_id.rsplit("/", 1)[-1]
    return Proxy(metadata=ObjectMeta(name=name, uid=kill.uid), spec=ProxySpec())
