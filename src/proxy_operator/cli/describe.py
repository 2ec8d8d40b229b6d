"""`describe`: everything about one object, for reading: no data of a Secret, no credentials."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from proxy_operator.app.client import Home, open_home
from proxy_operator.cli.age import format_age
from proxy_operator.cli.documents import document_of, shown_annotations, to_yaml
from proxy_operator.cli.home_options import HomeOptions
from proxy_operator.cli.invocation import CommandError, Invocation, UsageError
from proxy_operator.cli.output import print_text
from proxy_operator.cli.resources import Target, parse_targets
from proxy_operator.cli.table import NONE, Table, cell
from proxy_operator.domain.event import RecordedEvent
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import NotFoundError
from proxy_operator.runtime.objects import ObjectKey


@dataclass(frozen=True, kw_only=True)
class Options(HomeOptions):
    """Options of describe."""


def run(invocation: Invocation) -> int:
    """Describe what the arguments name."""
    options = invocation.options(Options)
    targets = parse_targets([invocation.word("resource"), *invocation.words("names")])
    if any(target.name is None for target in targets):
        raise UsageError(f"say which {targets[0].resource.singular} to describe")
    asyncio.run(_describe(targets, options))
    return 0


async def _describe(targets: Sequence[Target], options: Options) -> None:
    now = SystemClock().now()
    texts: list[str] = []
    faults: list[str] = []
    async with open_home(options.home) as home:
        for resource, name in targets:
            key = ObjectKey(options.named_namespace, name or "")
            try:
                obj: Any = await home.client.get(resource.kind, key)
            except NotFoundError:
                faults.append(
                    f'{resource.plural} "{key.name}" not found in namespace {key.namespace}'
                )
                continue
            texts.append(await _text_of(obj, home, now))
    print_text("\n\n".join(texts))
    if faults:
        raise CommandError(*faults)


async def _text_of(obj: Proxy | Secret, home: Home, now: datetime) -> str:
    if isinstance(obj, Secret):
        lines = [*_head(obj, now), *_secret_lines(obj)]
    else:
        key = ObjectKey(obj.metadata.namespace, obj.metadata.name)
        events = await home.events.events_of(key, obj.metadata.uid)
        lines = [*_head(obj, now), *_proxy_lines(obj, now), *_event_lines(events, now)]
    return "\n".join(lines) + "\n"


def _head(obj: Proxy | Secret, now: datetime) -> Iterator[str]:
    meta = obj.metadata
    yield _fact("Name", meta.name)
    yield _fact("Namespace", meta.namespace)
    yield from _pairs("Labels", meta.labels)
    yield from _pairs("Annotations", shown_annotations(obj))
    yield _fact("Age", format_age(meta.creation_timestamp, now))
    if meta.deletion_timestamp is not None:
        yield _fact("Deleting", f"for {format_age(meta.deletion_timestamp, now)}")


def _fact(title: str, value: object) -> str:
    return f"{title + ':':<20}{cell(value)}"


def _pairs(title: str, pairs: dict[str, str]) -> Iterator[str]:
    texts = [f"{key}={value}" for key, value in sorted(pairs.items())] or [NONE]
    for index, text in enumerate(texts):
        yield _fact(title, text) if index == 0 else f"{'':<20}{cell(text)}"


def _secret_lines(secret: Secret) -> Iterator[str]:
    yield _fact("Type", secret.type)
    yield "Data:"
    for key, value in sorted(secret.data.items()):
        yield f"  {key}: {len(value)} bytes"


def _proxy_lines(proxy: Proxy, now: datetime) -> Iterator[str]:
    status = proxy.status
    address = proxy.address
    checked = status.last_health_check_at
    yield _fact("Phase", status.phase)
    yield _fact("Address", f"{address[0]} port {address[1]}" if address else None)
    yield _fact("Provider ID", status.provider_id)
    yield _fact("Latency", None if status.latency_millis is None else f"{status.latency_millis}ms")
    yield _fact("Health changed", f"{format_age(checked, now)} ago" if checked else None)
    yield "Spec:"
    spec = to_yaml(document_of(proxy)["spec"])
    yield from (f"  {line}" for line in spec.split("\n")[:-1])
    yield "Conditions:"
    if not status.conditions:
        yield f"  {NONE}"
        return
    rows = [
        (c.type, c.status, c.reason, format_age(c.last_transition_at, now), c.message)
        for c in status.conditions
    ]
    yield from _table(("TYPE", "STATUS", "REASON", "AGE", "MESSAGE"), rows)


def _event_lines(events: Sequence[RecordedEvent], now: datetime) -> Iterator[str]:
    if not events:
        yield _fact("Events", None)
        return
    yield "Events:"
    rows = [(e.event.type, e.event.reason, _span_of(e, now), e.message) for e in events]
    yield from _table(("TYPE", "REASON", "AGE", "MESSAGE"), rows)


def _span_of(event: RecordedEvent, now: datetime) -> str:
    age = format_age(event.last_seen_at, now)
    if event.times < 2:
        return age
    return f"{age} (x{event.times} over {format_age(event.first_seen_at, now)})"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    lines = Table(header).lines([[cell(value) for value in row] for row in rows])
    return (f"  {line}" for line in lines)
