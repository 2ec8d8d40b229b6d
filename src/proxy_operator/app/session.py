"""A run with a beginning and an end: apply manifests, follow their proxies, delete everything.

This is a client of the store like any other command: it asks nothing of the operator but its work.
"""

import asyncio
from collections.abc import Callable, Container, Sequence
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from proxy_operator.app.applying import apply_all
from proxy_operator.app.client import Home
from proxy_operator.app.leaving import names_of, obstacle
from proxy_operator.app.manifests import Manifest
from proxy_operator.controllers.ports import ProviderRegistry
from proxy_operator.domain.condition import ConditionStatus, ConditionType, find
from proxy_operator.domain.kinds import kind_of
from proxy_operator.domain.meta import API_GROUP
from proxy_operator.domain.proxy import Phase, Proxy
from proxy_operator.provisioning.contract import Provider
from proxy_operator.provisioning.errors import ProviderError
from proxy_operator.runtime.errors import ConflictError, NotFoundError
from proxy_operator.runtime.objects import ObjectKey, Preconditions, key_of

_POLL: Final = timedelta(milliseconds=250)
_LONGEST_POLL: Final = timedelta(seconds=5)


class Narrator(Protocol):
    """Tells the person at the terminal how it goes."""

    def line(self, text: str) -> None:
        """Say something that stays."""

    def live(self, text: str) -> None:
        """Say something that the next word replaces; nothing at all when nobody watches."""


async def apply_and_tell(
    home: Home, manifests: Sequence[Manifest], narrator: Narrator
) -> list[ObjectKey]:
    """Apply manifests and return the keys of the Proxies among them. ManifestError."""
    keys: list[ObjectKey] = []
    async with aclosing(apply_all(home, manifests)) as answers:
        async for applied in answers:
            obj = applied.object
            narrator.line(f"{qualified_kind(obj)}/{obj.metadata.name} {applied.outcome}")
            if isinstance(obj, Proxy):
                keys.append(key_of(obj))
    return keys


def qualified_kind(obj: object) -> str:
    """Return kubectl's word for the kind of an object: `proxy.crawl.example.com`, `secret`."""
    kind = kind_of(type(obj))
    return f"{kind.kind.lower()}.{API_GROUP}" if API_GROUP in kind.api_version else "secret"


async def follow_until_ready(home: Home, keys: Sequence[ObjectKey], narrator: Narrator) -> None:
    """Say each change of these Proxies, and return when all that still exist are Ready."""
    told: dict[ObjectKey, str] = {}
    while True:
        proxies = [proxy for key in keys if (proxy := await _find(home, key)) is not None]
        for proxy in proxies:
            text = summary_of(proxy)
            if told.get(key_of(proxy)) != text:
                told[key_of(proxy)] = text
                narrator.line(f"  {proxy.metadata.name}: {text}")
        waiting = [proxy for proxy in proxies if proxy.status.phase is not Phase.READY]
        if not waiting:
            return
        ready = len(proxies) - len(waiting)
        narrator.live(f"{ready} of {len(proxies)} Ready, waiting for {names_of(waiting)}")
        await asyncio.sleep(_POLL.total_seconds())


def summary_of(proxy: Proxy) -> str:
    """Say in one line how a Proxy is, and why it is not Ready."""
    status = proxy.status
    if status.phase is Phase.READY:
        host, port = proxy.address or ("", 0)
        latency = "" if status.latency_millis is None else f", {status.latency_millis} ms"
        return f"Ready at {host}:{port}{latency}"
    phase = status.phase or Phase.PENDING
    for kind in (ConditionType.PROVISIONED, ConditionType.HEALTHY):
        row = find(status.conditions, kind)
        if row is not None and row.status is not ConditionStatus.TRUE and row.message:
            reason = "" if row.reason == phase else f"{row.reason}: "
            return f"{phase} ({reason}{row.message})"
    return str(phase)


async def tear_down(home: Home, narrator: Narrator, *, namespace: str | None = None) -> None:
    """Delete every Proxy and return when all are gone, and with them their instances.

    Somebody must reconcile meanwhile. Those created while this runs are deleted too. What nobody
    here can make go is named, once.
    """
    asked: dict[str, Proxy] = {}
    told: set[str] = set()
    while True:
        proxies = (await home.client.list(Proxy, namespace=namespace)).items
        _tell_gone(asked, proxies, narrator)
        if not proxies:
            return
        for proxy in proxies:
            text = obstacle(proxy)
            if text is not None and text not in told:
                told.add(text)
                narrator.line(text)
            if proxy.metadata.uid not in asked:
                asked[proxy.metadata.uid] = proxy
                await _ask_to_go(home, proxy)
        narrator.live(f"waiting for {names_of(proxies)} to go, each with its instance")
        await asyncio.sleep(_POLL.total_seconds())


async def _ask_to_go(home: Home, proxy: Proxy) -> None:
    with suppress(NotFoundError, ConflictError):
        await home.client.delete(Proxy, key_of(proxy), Preconditions(proxy.metadata.uid))


def _tell_gone(asked: dict[str, Proxy], left: Sequence[Proxy], narrator: Narrator) -> None:
    """Say which are gone since the last time, and forget them."""
    still = {proxy.metadata.uid for proxy in left}
    for uid in [uid for uid in asked if uid not in still]:
        proxy = asked.pop(uid)
        narrator.line(f'{qualified_kind(proxy)} "{proxy.metadata.name}" deleted')


class Searched(NamedTuple):
    """The providers by where this process looked for instances, by name.

    What is in neither is no provider of these settings: it may have instances of ours all the same.
    """

    empty: Sequence[str]
    """Those that have none left."""
    unseen: Sequence[str]
    """Those that were asked for and could not be looked at."""


async def delete_leftovers(
    providers: ProviderRegistry,
    narrator: Narrator,
    may_delete: Callable[[], bool],
    *,
    only: Container[str] | None = None,
) -> Searched:
    """Return when no instance is left where one can be looked for.

    What there is counts as nobody's and is deleted, however young. `may_delete` tells whether that
    is for this process to do: nobody else may make instances then. `only` leaves providers out at
    which a Proxy that is still there may have some.
    """
    unseen = []
    for name, missing in providers.unusable():
        if only is not None and name not in only:
            continue
        narrator.line(f"instances of {name} cannot be looked for: {missing}")
        unseen.append(name)
    empty = []
    for name, provider in providers.available():
        if only is not None and name not in only:
            continue
        await _empty(name, provider, narrator, may_delete)
        empty.append(name)
    return Searched(empty, unseen)


async def _empty(
    name: str, provider: Provider, narrator: Narrator, may_delete: Callable[[], bool]
) -> None:
    """Return when a provider has no instance left; say once what keeps them."""
    pause, told = _POLL, set[str]()
    while True:
        obstacle = None
        try:
            listed = await provider.list_by_tag()
            for instance in listed.items if may_delete() else ():
                await provider.delete(instance.provider_id)
        except ProviderError as err:
            obstacle = f"instances of {name} cannot be deleted yet: {err}"
        else:
            if listed.items:
                count = len(listed.items)
                narrator.live(f"waiting for {count} instances of {name} without a Proxy to go")
            elif listed.complete:
                return
            else:
                obstacle = f"some instances of {name} cannot be read yet"
        if obstacle is not None and obstacle not in told:
            told.add(obstacle)
            narrator.line(obstacle)
        await asyncio.sleep(pause.total_seconds())
        # A cloud counts the requests.
        pause = min(pause * 2, _LONGEST_POLL)


async def _find(home: Home, key: ObjectKey) -> Proxy | None:
    try:
        return await home.client.get(Proxy, key)
    except NotFoundError:
        return None
