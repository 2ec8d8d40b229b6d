"""Events as `events.k8s.io/v1`, so that `kubectl describe` shows them.

Equal happenings share one Event as a series, as client-go's recorder does; the names of those
written lately are remembered here, and forgotten ones begin a new series.
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/
"""

import asyncio
import logging
import secrets
from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from proxy_operator.adapters.kube.client import MERGE_PATCH, KubeClient, Request
from proxy_operator.adapters.kube.codec import collection_path, encode, object_path
from proxy_operator.controllers.events import Batch, Happening, Tally
from proxy_operator.domain.event import EventKind, EventType, RecordedEvent
from proxy_operator.domain.kinds import PROXY
from proxy_operator.domain.meta import API_GROUP
from proxy_operator.runtime.errors import NotFoundError, ObjectError, UnavailableError
from proxy_operator.runtime.objects import ObjectKey

logger = logging.getLogger(__name__)

_API: Final = "events.k8s.io/v1"
_PLURAL: Final = "events"
_SERIES_LASTS: Final = timedelta(minutes=6).total_seconds()
"""After a longer silence the next equal happening is a new Event, as with client-go."""
_REMEMBERED: Final = 4096
_AT_ONCE: Final = 4
_NAME_LIMIT: Final = 253
_LONGEST_INSTANCE: Final = 128


class _Series(NamedTuple):
    """An Event that was written."""

    name: str
    tally: Tally


class EventApi:
    """Writes Events as the operator, and reads those of an object."""

    def __init__(self, client: KubeClient, reporter: str) -> None:
        """Report as `reporter`, which names this process among all that do."""
        self._client = client
        self._reporter = reporter[:_LONGEST_INSTANCE]
        self._series: OrderedDict[Happening, _Series] = OrderedDict()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def write(self, batch: Batch) -> Batch:
        """Write a batch; what the server could not take now is returned."""
        rest: dict[Happening, Tally] = {}

        async def write_one(happening: Happening, tally: Tally) -> None:
            async with self._turn:
                try:
                    await self._write(happening, tally)
                except UnavailableError as err:
                    logger.warning("an event could not be written", extra={"error": str(err)})
                    rest[happening] = tally
                except ObjectError as err:
                    # Asking again would get the same answer.
                    logger.warning("an event was refused", extra={"error": str(err)})

        async with asyncio.TaskGroup() as tasks:
            for happening, tally in batch.items():
                tasks.create_task(write_one(happening, tally))
        return rest

    async def events_of(self, key: ObjectKey, uid: str | None = None) -> list[RecordedEvent]:
        """Return the Events still kept, latest last; of one object or of all of that name."""
        fields = f"regarding.kind={PROXY.kind},regarding.name={key.name}"
        query = {"fieldSelector": fields if uid is None else f"{fields},regarding.uid={uid}"}
        path = collection_path(_API, _PLURAL, key.namespace)
        body = await self._client.send(Request("GET", path, f"events of {key}", query))
        try:
            found = _events.decode(body).items
        except msgspec.MsgspecError as err:
            raise UnavailableError(f"the events of {key} cannot be read: {err}") from err
        return sorted((event.recorded() for event in found), key=_by_time)

    async def _write(self, happening: Happening, tally: Tally) -> None:
        known = self._series.pop(happening, None)
        if known is not None and tally.first - known.tally.last < _SERIES_LASTS:
            total = known.tally.plus(tally)
            series = {"series": {"count": total.times, "lastObservedTime": _micro(total.last)}}
            path = object_path(_API, _PLURAL, ObjectKey(happening.key.namespace, known.name))
            request = Request("PATCH", path, "an event", {}, encode(series), MERGE_PATCH)
            try:
                await self._client.send(request)
            except NotFoundError:
                pass  # it has expired: begin anew
            else:
                self._remember(happening, _Series(known.name, total))
                return
        name = _event_name(happening.key.name)
        path = collection_path(_API, _PLURAL, happening.key.namespace)
        body = encode(self._document(happening, tally, name))
        await self._client.send(Request("POST", path, "an event", {}, body))
        self._remember(happening, _Series(name, tally))

    def _remember(self, happening: Happening, series: _Series) -> None:
        self._series[happening] = series
        while len(self._series) > _REMEMBERED:
            self._series.popitem(last=False)

    def _document(self, happening: Happening, tally: Tally, name: str) -> dict[str, Any]:
        document: dict[str, Any] = {
            "apiVersion": _API,
            "kind": "Event",
            "metadata": {"name": name, "namespace": happening.key.namespace},
            "eventTime": _micro(tally.first),
            "type": happening.event.type,
            "reason": happening.event.reason,
            "action": happening.event.action,
            "note": happening.message,
            "reportingController": f"{API_GROUP}/proxy-operator",
            "reportingInstance": self._reporter,
            "regarding": {
                "apiVersion": PROXY.api_version,
                "kind": PROXY.kind,
                "namespace": happening.key.namespace,
                "name": happening.key.name,
                "uid": happening.uid,
            },
        }
        if tally.times > 1:
            document["series"] = {"count": tally.times, "lastObservedTime": _micro(tally.last)}
        return document


class _SeriesField(msgspec.Struct, frozen=True, rename="camel"):
    count: int = 1
    last_observed_time: datetime | None = None


class _Event(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    reason: str = ""
    action: str = ""
    note: str = ""
    event_time: datetime | None = None
    series: _SeriesField | None = None
    deprecated_count: int = 1
    deprecated_first_timestamp: datetime | None = None
    deprecated_last_timestamp: datetime | None = None

    def recorded(self) -> RecordedEvent:
        """Read it as the controllers' own Events are read; older ones fill other fields."""
        first = self.event_time or self.deprecated_first_timestamp or datetime.fromtimestamp(0, UTC)
        last = self.deprecated_last_timestamp or first
        times = self.deprecated_count
        if self.series is not None:
            times, last = self.series.count, self.series.last_observed_time or last
        loud = EventType.WARNING if self.type == EventType.WARNING else EventType.NORMAL
        kind = EventKind(loud, self.reason, self.action)
        return RecordedEvent(kind, self.note, max(times, 1), first, last)


class _EventList(msgspec.Struct, frozen=True):
    items: list[_Event] = []


_events: Final = msgspec.json.Decoder(_EventList)


def _by_time(event: RecordedEvent) -> tuple[datetime, datetime]:
    return event.last_seen_at, event.first_seen_at


def _event_name(about: str) -> str:
    suffix = f".{secrets.token_hex(8)}"
    return about[: _NAME_LIMIT - len(suffix)].rstrip(".-") + suffix


def _micro(seconds: float) -> str:
    """Write a moment as `metav1.MicroTime`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
