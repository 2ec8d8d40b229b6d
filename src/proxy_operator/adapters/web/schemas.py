"""Bodies as they stand on the wire, and their strict reading.

A typo must not lease the wrong thing: unknown fields, wrong types, nulls and keys given twice are
refused, naming the field.
"""

import json
import re
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from proxy_operator.discovery.model import InvalidRequestError

MAX_TARGET: Final = 2048

Target = Annotated[
    str,
    Meta(
        description="What the proxy is used for, such as a site: opaque, compared as exact text.",
        max_length=MAX_TARGET,
        examples=["example.com"],
    ),
]
TtlSeconds = Annotated[
    int,
    Meta(
        description="How long the lease lasts: from 1 to --max-lease-ttl; absent is 300.",
        ge=1,
        examples=[300],
    ),
]
T = TypeVar("T", bound=msgspec.Struct)


class _Body(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Shape shared by all request bodies."""


class AcquireBody(_Body, frozen=True):
    """What kind of proxy, for how long. Every field may be left out; an empty body is `{}`."""

    selector: (
        Annotated[
            dict[str, str],
            Meta(
                description="Attributes that must all be equal.",
                max_length=64,
                examples=[{"region": "eu"}],
            ),
        ]
        | UnsetType
    ) = UNSET
    ttl_seconds: TtlSeconds | UnsetType = UNSET
    target: Target | UnsetType = UNSET
    namespace: (
        Annotated[
            str,
            Meta(
                description="Only proxies of this namespace.",
                min_length=1,
                max_length=253,
                examples=["default"],
            ),
        ]
        | UnsetType
    ) = UNSET


class ReportBody(_Body, frozen=True):
    """How the use of a leased proxy went."""

    result: Annotated[
        str,
        Meta(
            description="Anything but ok blocks the proxy for the target for --cooldown-window.",
            extra_json_schema={"enum": ["ok", "rate_limited", "banned"]},
        ),
    ]
    target: (
        Annotated[
            str,
            Meta(
                description="Absent or empty: the target of the lease; without one, every target.",
                max_length=MAX_TARGET,
            ),
        ]
        | UnsetType
    ) = UNSET


class RenewBody(_Body, frozen=True):
    """How long a lease lasts from now. An empty body is `{}`."""

    ttl_seconds: TtlSeconds | UnsetType = UNSET


class ErrorBody(msgspec.Struct, kw_only=True, frozen=True):
    """Every error."""

    error: Annotated[str, Meta(description="A code to branch on.")]
    message: Annotated[str, Meta(description="One sentence for people.")]


class NoMatchBody(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Why there was no proxy. Each match counts once, in the order of the fields."""

    error: Annotated[str, Meta(description="Always no_match.")]
    message: str
    considered: Annotated[int, Meta(description="Proxies that match selector and namespace.")]
    unhealthy: int
    at_capacity: Annotated[int, Meta(description="As many leases as maxLeases; drained ones too.")]
    in_cooldown: Annotated[int, Meta(description="Reported for this target, or for every one.")]


class HealthBody(msgspec.Struct, kw_only=True, frozen=True):
    """The API answers."""

    status: str = "ok"


def read_body(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode a body; InvalidRequestError names what is wrong with it."""
    body = body or b"{}"
    try:
        value = decoder.decode(body)
        # Every member has its colon: as many as were read, and none was given twice.
        if body.count(b":") != _count_members(value):
            _strict.decode(body.decode())
    except (msgspec.MsgspecError, ValueError, RecursionError) as err:
        raise InvalidRequestError(f"body: {_reason(err)}") from err
    return value


# How the decoder names types in `Expected ..., got ...`, and what people call them.
_TYPE: Final = re.compile(r"(?<=[Ee]xpected )`(\w+)`|(?<=, got )`(\w+)`")
_TYPES: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "text",
}


def _count_members(value: msgspec.Struct) -> int:
    given = [v for v in msgspec.structs.astuple(value) if v is not UNSET]
    return len(given) + sum(len(v) for v in given if isinstance(v, dict))


def _reason(err: Exception) -> str:
    text = _TYPE.sub(lambda m: _TYPES.get(m[1] or m[2], m[0]), str(err)).replace(
        " - at `$.", " in `"
    )
    return text if text.startswith("JSON") else text[:1].lower() + text[1:] or "not JSON"


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"field `{twice}` is given twice")


# msgspec keeps the last of two equal keys, so which lease would be meant is decided by chance.
_strict: Final = json.JSONDecoder(object_pairs_hook=_refuse_twice)
