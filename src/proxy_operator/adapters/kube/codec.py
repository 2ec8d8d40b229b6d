"""Where kinds live under the API server's URL, and how lists and watch lines are read.

An object that cannot be read is never passed over in silence: its uid is kept, so that whoever
decides by absence counts it as there.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple
from urllib.parse import quote

import msgspec

from proxy_operator.adapters.kube.errors import Status
from proxy_operator.domain.kinds import Kind
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.objects import ObjectKey, T, WatchEvent, WatchEventType

logger = logging.getLogger(__name__)


def collection_path(api_version: str, plural: str, namespace: str | None) -> str:
    """Return the path of the objects of a kind, in a namespace or in all.

    An empty namespace is none: the kind belongs to the cluster.
    """
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{root}{where}/{plural}"


def object_path(api_version: str, plural: str, key: ObjectKey) -> str:
    """Return the path of one object."""
    return f"{collection_path(api_version, plural, key.namespace)}/{quote(key.name, safe='')}"


def label_selector(labels: Mapping[str, str] | None) -> dict[str, str]:
    """Return the query that asks for objects with all these labels."""
    if not labels:
        return {}
    return {"labelSelector": ",".join(f"{key}={value}" for key, value in labels.items())}


class _Identity(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Known(msgspec.Struct, frozen=True):
    """The part of any object that can always be read."""

    metadata: _Identity


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next: str = msgspec.field(default="", name="continue")


class _RawPage(msgspec.Struct, frozen=True):
    metadata: _ListMeta
    items: list[msgspec.Raw] = []


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class Page(NamedTuple, Generic[T]):
    """A part of a list."""

    items: list[T]
    unreadable: list[str]
    """Uids of objects that are there and cannot be read."""
    resource_version: str
    next: str
    """Token of the next page; empty at the end."""


_known: Final = msgspec.json.Decoder(_Known)
_raw_page: Final = msgspec.json.Decoder(_RawPage)
_line: Final = msgspec.json.Decoder(_Line)
_status: Final = msgspec.json.Decoder(Status)


class Codec(Generic[T]):
    """Reads what the API server says of one kind."""

    def __init__(self, kind: Kind[T]) -> None:
        self._kind = kind

    def object(self, body: bytes) -> T:
        """Read an object. UnavailableError when it is none of this kind."""
        try:
            return self._kind.decode(body)
        except msgspec.MsgspecError as err:
            raise UnavailableError(f"a {self._kind.kind} cannot be read: {err}") from err

    def page(self, body: bytes) -> Page[T]:
        """Read a page of a list."""
        try:
            raw = _raw_page.decode(body)
        except msgspec.MsgspecError as err:
            raise UnavailableError(f"a list of {self._kind.plural} cannot be read: {err}") from err
        items: list[T] = []
        unreadable: list[str] = []
        decode = self._kind.decoder.decode
        for item in raw.items:
            try:
                items.append(decode(item))
            except msgspec.MsgspecError as err:
                unreadable.append(self._complain(bytes(item), err).uid)
        return Page(items, unreadable, raw.metadata.resource_version, raw.metadata.next)

    def event(self, line: bytes) -> WatchEvent[T] | Status:
        """Read a line of a watch: an event, or the refusal that ends it."""
        try:
            raw = _line.decode(line)
            if raw.type == "ERROR":
                return _status.decode(raw.object)
            if raw.type == WatchEventType.BOOKMARK:
                version = _known.decode(raw.object).metadata.resource_version
                return WatchEvent(WatchEventType.BOOKMARK, None, version)
        except msgspec.MsgspecError as err:
            raise UnavailableError(f"a line of the watch cannot be read: {err}") from err
        try:
            obj = self._kind.decode(raw.object)
        except msgspec.MsgspecError as err:
            known = self._complain(bytes(raw.object), err)
            return WatchEvent(WatchEventType.BOOKMARK, None, known.resource_version)
        return WatchEvent(WatchEventType(raw.type), obj, obj.metadata.resource_version)

    def _complain(self, raw: bytes, err: Exception) -> _Identity:
        """Say which object cannot be read, and return what can be read of it."""
        try:
            meta = _known.decode(raw).metadata
        except msgspec.MsgspecError:
            raise UnavailableError(f"a {self._kind.kind} cannot be read: {err}") from err
        logger.error(
            "an object cannot be read, what is known of it stays",
            extra={
                "kind": self._kind.kind,
                "key": f"{meta.namespace}/{meta.name}",
                "error": str(err),
            },
        )
        return meta


def encode(document: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Write JSON."""
    return msgspec.json.encode(document)


def document_of(body: bytes) -> dict[str, Any]:
    """Read any object as builtins."""
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError as err:
        raise UnavailableError(f"an answer of the API server cannot be read: {err}") from err
