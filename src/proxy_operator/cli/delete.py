"""`delete`: ask for the end of objects and, unless told otherwise, wait for it.

A Proxy goes only when its instance has gone: that is what the wait is for.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from proxy_operator.app.client import Home, open_home
from proxy_operator.app.leaving import has_instance, names_of, obstacle, reason_for_all
from proxy_operator.app.manifests import read_manifests
from proxy_operator.cli.home_options import HomeOptions
from proxy_operator.cli.invocation import CommandError, Invocation, UsageError
from proxy_operator.cli.output import print_line, say
from proxy_operator.cli.resources import Resource, parse_targets, resource_named
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey, Preconditions

_POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Options(HomeOptions):
    """Options of delete."""

    filename: tuple[Path, ...]
    wait: bool
    timeout: timedelta | None


class Doomed(NamedTuple):
    """One object to delete."""

    resource: Resource
    key: ObjectKey

    @property
    def said(self) -> str:
        """As kubectl names it."""
        return f'{self.resource.qualified} "{self.key.name}"'


def run(invocation: Invocation) -> int:
    """Delete what the arguments, or the manifests, name."""
    options = invocation.options(Options)
    doomed = _doomed(invocation.words("words"), options)
    asyncio.run(_delete(doomed, options))
    return 0


def _doomed(words: Sequence[str], options: Options) -> list[Doomed]:
    if words and options.filename:
        raise UsageError("name objects or give -f, not both")
    if options.filename:
        bodies = [
            m.body
            for m in read_manifests(
                options.filename, namespace=options.namespace, default=options.named_namespace
            )
        ]
        return [_named_by(body) for body in bodies]
    if not words:
        raise UsageError("say what to delete: proxy NAME, secret NAME or -f FILE")
    found = []
    for resource, name in parse_targets(words):
        if name is None:
            raise UsageError(
                f"say which {resource.singular} to delete (`down` deletes every Proxy)"
            )
        found.append(Doomed(resource, ObjectKey(options.named_namespace, name)))
    return found


def _named_by(body: dict[str, Any]) -> Doomed:
    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    namespace = meta.get("namespace") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not isinstance(namespace, str):
        raise CommandError("a manifest names no object: metadata.name is missing")
    return Doomed(resource_named(str(body.get("kind"))), ObjectKey(namespace, name))


async def _delete(doomed: Sequence[Doomed], options: Options) -> None:
    faults: list[str] = []
    async with open_home(options.home) as home:
        asked: dict[Doomed, str] = {}
        for one in dict.fromkeys(doomed):
            try:
                obj = await home.client.get(one.resource.kind, one.key)
                uid = obj.metadata.uid
                await home.client.delete(one.resource.kind, one.key, Preconditions(uid))
            except (NotFoundError, ConflictError):
                faults.append(
                    f'{one.resource.plural} "{one.key.name}" not found in namespace'
                    f" {one.key.namespace}"
                )
                continue
            asked[one] = uid
        if options.wait:
            await _wait(home, asked, options)
        else:
            for one in await _left(home, asked):
                print_line(f"{one.said} is being deleted")
    if faults:
        raise CommandError(*faults)


Left = dict[Doomed, Proxy | Secret]


async def _wait(home: Home, asked: dict[Doomed, str], options: Options) -> None:
    """Return when none of these objects exists any more; say what keeps them."""
    told: set[str] = set()
    left: Left = {}
    seconds = options.timeout.total_seconds() if options.timeout else None
    try:
        async with asyncio.timeout(seconds):
            while left := await _left(home, asked):
                for text in _obstacles(home, [*left.values()], options):
                    if text not in told:
                        told.add(text)
                        say(text)
                if not told and sys.stderr.isatty():
                    told.add("")
                    say(f"waiting for {names_of([*left.values()])} to go")
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        kept = [*left.values()]
        names = names_of(kept) or "the objects"
        raise CommandError(
            f"timed out while waiting for {names} to go{reason_for_all(kept)}"
        ) from None


def _obstacles(home: Home, left: Sequence[Proxy | Secret], options: Options) -> Iterator[str]:
    """Yield a sentence for everything that holds objects up."""
    yield from filter(None, map(obstacle, left))
    instances = [obj for obj in left if has_instance(obj)]
    if instances and not home.is_operator_running():
        yield (
            f"no operator runs on {options.data_dir}, so the instances of {names_of(instances)}"
            " stay: start one, or use `down`"
        )


async def _left(home: Home, asked: dict[Doomed, str]) -> Left:
    """Say which are gone, forget them, and return the others as they are now."""
    left: Left = {}
    for one, uid in [*asked.items()]:
        try:
            obj = await home.client.get(one.resource.kind, one.key)
        except NotFoundError:
            obj = None
        if obj is not None and obj.metadata.uid == uid:
            left[one] = obj
        else:
            del asked[one]
            print_line(f"{one.said} deleted")
    return left
