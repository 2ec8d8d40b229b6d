"""`get`: lists and single objects, as table or document, once or as they change."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from proxy_operator.app.client import Home, open_home
from proxy_operator.cli.documents import document_of, list_of, to_json, to_yaml
from proxy_operator.cli.home_options import HomeOptions
from proxy_operator.cli.invocation import CommandError, Invocation, UsageError
from proxy_operator.cli.output import print_line, print_text, say
from proxy_operator.cli.resources import Resource, Target, parse_targets
from proxy_operator.cli.table import Table
from proxy_operator.runtime.clock import SystemClock
from proxy_operator.runtime.errors import ExpiredError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey, WatchEventType


@dataclass(frozen=True, kw_only=True)
class Options(HomeOptions):
    """Options of get."""

    all_namespaces: bool
    selector: dict[str, str] | None
    output: str
    watch: bool

    @property
    def scope(self) -> str | None:
        """The namespace to look in; None is all."""
        return None if self.all_namespaces else self.named_namespace


def run(invocation: Invocation) -> int:
    """Show what the arguments name."""
    options = invocation.options(Options)
    targets = parse_targets([invocation.word("resource"), *invocation.words("names")])
    names = [target.name for target in targets if target.name is not None]
    if names and options.all_namespaces:
        raise UsageError("an object is named in one namespace: drop -A or the name")
    if names and options.selector:
        raise UsageError("-l chooses among all objects: drop it or the name")
    if options.watch and len({target.resource.plural for target in targets}) > 1:
        raise UsageError("-w watches one kind at a time")
    asyncio.run(_get(targets, options))
    return 0


async def _get(targets: Sequence[Target], options: Options) -> None:
    async with open_home(options.home) as home:
        if options.watch:
            await _watch(home, targets, options)
            return
        found, faults = await _find(home, targets, options)
    if not found and not faults and options.output in {"table", "wide"}:
        where = f"{options.scope} namespace" if options.scope else "any namespace"
        say(f"No resources found in {where}.")
    elif found or not faults:
        is_single = len(targets) == 1 and targets[0].name is not None
        print_text(_rendered(found, options, is_single=is_single))
    if faults:
        raise CommandError(*faults)


async def _find(
    home: Home, targets: Sequence[Target], options: Options
) -> tuple[list[tuple[Resource, Any]], list[str]]:
    """Return the objects with their kinds, sorted, and a sentence for each that is missing."""
    found: list[tuple[Resource, Any]] = []
    faults: list[str] = []
    for resource, name in targets:
        if name is None:
            listing = await home.client.list(
                resource.kind, namespace=options.scope, labels=options.selector
            )
            found.extend((resource, obj) for obj in sorted(listing.items, key=_by_key))
            continue
        namespace = options.named_namespace
        try:
            obj = await home.client.get(resource.kind, ObjectKey(namespace, name))
        except NotFoundError:
            faults.append(f'{resource.plural} "{name}" not found in namespace {namespace}')
        else:
            found.append((resource, obj))
    return found, faults


def _by_key(obj: Any) -> tuple[str, str]:  # noqa: ANN401 - any object
    return obj.metadata.namespace, obj.metadata.name


def _rendered(found: Sequence[tuple[Resource, Any]], options: Options, *, is_single: bool) -> str:
    if options.output == "name":
        return "".join(f"{resource.qualified}/{obj.metadata.name}\n" for resource, obj in found)
    if options.output in {"json", "yaml"}:
        documents = [document_of(obj) for _, obj in found]
        document = documents[0] if is_single else list_of(documents)
        return to_json(document) if options.output == "json" else to_yaml(document)
    blocks = []
    for resource in dict.fromkeys(resource for resource, _ in found):
        table = ObjectTable(resource, options)
        blocks.append("\n".join(table.lines([obj for kind, obj in found if kind is resource])))
    return "\n\n".join(blocks) + "\n"


class ObjectTable:
    """The table of one kind, which may grow."""

    def __init__(self, resource: Resource, options: Options) -> None:
        self._resource = resource
        self._is_wide = options.output == "wide"
        self._has_namespace = options.all_namespaces
        first = ["NAMESPACE", "NAME"] if self._has_namespace else ["NAME"]
        self._table = Table([*first, *resource.header(is_wide=self._is_wide)])
        self._clock = SystemClock()

    def lines(self, objects: Sequence[Any]) -> list[str]:
        """Return the lines for these objects."""
        return self._table.lines([self._row(obj) for obj in objects])

    def _row(self, obj: Any) -> list[str]:  # noqa: ANN401 - any object
        meta = obj.metadata
        first = [meta.namespace, meta.name] if self._has_namespace else [meta.name]
        return [*first, *self._resource.cells(obj, self._clock.now(), is_wide=self._is_wide)]


async def _watch(home: Home, targets: Sequence[Target], options: Options) -> None:
    """Print the list, then every change; a history that ran out is listed anew."""
    resource = targets[0].resource
    names = {target.name for target in targets if target.name is not None}
    printed: dict[str, str] = {}
    table = ObjectTable(resource, options)

    def show(objects: Sequence[Any]) -> None:
        fresh = [
            obj
            for obj in objects
            if (not names or obj.metadata.name in names)
            and printed.get(obj.metadata.uid) != obj.metadata.resource_version
        ]
        printed.update((obj.metadata.uid, obj.metadata.resource_version) for obj in fresh)
        _print_objects(resource, table, fresh, options)

    while True:
        listing = await home.client.list(
            resource.kind, namespace=options.scope, labels=options.selector
        )
        show(sorted(listing.items, key=_by_key))
        version = listing.resource_version
        try:
            while True:
                stream = home.client.watch(
                    resource.kind, version, namespace=options.scope, labels=options.selector
                )
                async with aclosing(stream):
                    async for event in stream:
                        version = event.resource_version
                        if event.type is not WatchEventType.BOOKMARK and event.object is not None:
                            show([event.object])
        except ExpiredError:
            continue


def _print_objects(
    resource: Resource, table: ObjectTable, objects: Sequence[Any], options: Options
) -> None:
    if not objects:
        return
    match options.output:
        case "json":
            print_text("".join(to_json(document_of(obj)) for obj in objects))
        case "yaml":
            print_text("".join(f"---\n{to_yaml(document_of(obj))}" for obj in objects))
        case "name":
            print_text("".join(f"{resource.qualified}/{o.metadata.name}\n" for o in objects))
        case _:
            for line in table.lines(objects):
                print_line(line)
