"""The kinds of object this operator stores, and how each is written on the wire.

One table: whoever needs a plural, an apiVersion or a decoder asks here.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from proxy_operator.domain import proxy, secret
from proxy_operator.domain.meta import API_VERSION

T = TypeVar("T")


class Kind(NamedTuple, Generic[T]):
    """What tells one kind from another."""

    type: type[T]
    api_version: str
    kind: str
    plural: str
    content: tuple[str, ...]
    """Members of the object that a manifest sets, beside labels and annotations."""
    has_status: bool
    """Status is a subresource of its own, and a change of content raises the generation."""
    decoder: msgspec.json.Decoder[T]

    def decode(self, text: str | bytes) -> T:
        """Read an object from its JSON; msgspec.MsgspecError when it is none."""
        return self.decoder.decode(text)


PROXY: Final = Kind(
    type=proxy.Proxy,
    api_version=API_VERSION,
    kind=proxy.KIND,
    plural="proxies",
    content=("spec",),
    has_status=True,
    decoder=msgspec.json.Decoder(proxy.Proxy),
)
SECRET: Final = Kind(
    type=secret.Secret,
    api_version=secret.API_VERSION,
    kind=secret.KIND,
    plural="secrets",
    content=("data", "type"),
    has_status=False,
    decoder=msgspec.json.Decoder(secret.Secret),
)
KINDS: Final[tuple[Kind[Any], ...]] = (PROXY, SECRET)
_BY_TYPE: Final = {kind.type: kind for kind in KINDS}
_BY_NAME: Final = {kind.kind: kind for kind in KINDS}


def kind_of(type_: type[T]) -> Kind[T]:
    """Return the row of a type; KeyError when it is not stored."""
    return cast("Kind[T]", _BY_TYPE[type_])


def kind_named(name: str) -> Kind[Any] | None:
    """Return the row of a `kind:` as manifests write it, or None."""
    return _BY_NAME.get(name)


def to_document(value: Any) -> Any:  # noqa: ANN401 - any struct gives any JSON value
    """Return the JSON form of a struct, made of dicts, lists, text, numbers and booleans.

    Times become RFC 3339 in UTC with whole seconds, as Kubernetes writes `metav1.Time`.
    """
    return _with_times(msgspec.to_builtins(value, builtin_types=(datetime,)))


def _with_times(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _with_times(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_times(item) for item in value]
    return format_time(value) if isinstance(value, datetime) else value


def format_time(moment: datetime) -> str:
    """Write a moment as RFC 3339 in UTC with whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def content_of(kind: Kind[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of an admitted object that its manifest sets."""
    return {name: document[name] for name in kind.content if name in document}


def addressed(manifest: Mapping[str, Any]) -> tuple[Kind[Any], str, str] | None:
    """Return kind, namespace and name that a manifest is about; None when it does not say.

    A missing namespace is `default`.
    """
    kind, metadata = manifest.get("kind"), manifest.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return None
    row, name = _BY_NAME.get(kind), metadata.get("name")
    namespace = metadata.get("namespace") or "default"
    if row is None or not isinstance(name, str) or not isinstance(namespace, str):
        return None
    return row, namespace, name
