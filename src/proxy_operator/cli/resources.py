"""The kinds a command can name, the words for them, and their columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from proxy_operator.cli.age import format_age
from proxy_operator.cli.invocation import UsageError
from proxy_operator.cli.table import cell
from proxy_operator.domain.condition import ConditionType, find
from proxy_operator.domain.meta import API_GROUP
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of `get`: its title and how to fill it."""

    title: str
    fill: Callable[[Any, datetime], object]
    is_wide: bool = False


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A kind of object as people name it."""

    kind: type[Proxy] | type[Secret]
    singular: str
    plural: str
    group: str
    short: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def qualified(self) -> str:
        """Singular with group: `proxy.crawl.example.com`, `secret`."""
        return f"{self.singular}.{self.group}" if self.group else self.singular

    def is_called(self, word: str) -> bool:
        """Tell whether a word means this kind, in any of kubectl's ways of writing it."""
        name, _, group = word.lower().partition(".")
        return name in {self.singular, self.plural, *self.short} and group in {"", self.group}

    def header(self, *, is_wide: bool) -> list[str]:
        """Return the titles of the columns after NAME."""
        return [column.title for column in self.columns if is_wide or not column.is_wide]

    def cells(self, obj: Proxy | Secret, now: datetime, *, is_wide: bool) -> list[str]:
        """Return one row, without the name."""
        shown = (column for column in self.columns if is_wide or not column.is_wide)
        return [cell(column.fill(obj, now)) for column in shown]


class Target(NamedTuple):
    """What an argument names: a kind, or one object of it."""

    resource: Resource
    name: str | None


def _latency(proxy: Proxy, _: datetime) -> str | None:
    millis = proxy.status.latency_millis
    return None if millis is None else f"{millis}ms"


def _reason(proxy: Proxy, _: datetime) -> str | None:
    row = find(proxy.status.conditions, ConditionType.PROVISIONED)
    return row.reason if row else None


def _age(obj: Proxy | Secret, now: datetime) -> str:
    return format_age(obj.metadata.creation_timestamp, now)


PROXIES: Final = Resource(
    kind=Proxy,
    singular="proxy",
    plural="proxies",
    group=API_GROUP,
    short=("crawlproxy",),
    columns=(
        Column(title="PHASE", fill=lambda p, _: p.status.phase),
        Column(title="PROVIDER", fill=lambda p, _: p.spec.provider),
        Column(title="IP", fill=lambda p, _: p.status.ip),
        Column(title="LATENCY", fill=_latency),
        Column(title="AGE", fill=_age),
        Column(title="PROVIDERID", fill=lambda p, _: p.status.provider_id, is_wide=True),
        Column(title="REASON", fill=_reason, is_wide=True),
    ),
)
SECRETS: Final = Resource(
    kind=Secret,
    singular="secret",
    plural="secrets",
    group="",
    short=(),
    columns=(
        Column(title="TYPE", fill=lambda s, _: s.type),
        Column(title="DATA", fill=lambda s, _: len(s.data)),
        Column(title="AGE", fill=_age),
    ),
)
RESOURCES: Final = (PROXIES, SECRETS)


def resource_named(word: str) -> Resource:
    """Return the kind a word means. UsageError."""
    for resource in RESOURCES:
        if resource.is_called(word):
            return resource
    raise UsageError(f"no kind is called {word!r}: there are proxies and secrets")


def resource_of(obj: object) -> Resource:
    """Return the kind of an object."""
    return next(resource for resource in RESOURCES if isinstance(obj, resource.kind))


def parse_targets(words: Sequence[str]) -> list[Target]:
    """Read `KIND`, `KIND NAME...` or `KIND/NAME...`. UsageError."""
    if not words:
        raise UsageError("say what: proxies or secrets")
    if any("/" in word for word in words):
        return [_slashed(word) for word in words]
    resource = resource_named(words[0])
    if len(words) == 1:
        return [Target(resource, None)]
    return [Target(resource, name) for name in words[1:]]


def _slashed(word: str) -> Target:
    kind, slash, name = word.partition("/")
    if not slash or not name or "/" in name:
        raise UsageError(f"{word!r} is not KIND/NAME, and the two ways to name objects do not mix")
    return Target(resource_named(kind), name)
