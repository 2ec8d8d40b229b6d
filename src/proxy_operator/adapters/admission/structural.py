"""Defaults and checks of a structural schema: what the API server does before it looks at CEL.

Every fault is reported, each in words a person can act on; unknown fields are faults. Nothing
here trusts the value: YAML can hold dates, bytes, sets, NaN, and keys that are no text.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from proxy_operator.adapters.admission.schema import Schema
from proxy_operator.runtime.errors import FieldError

_RANGES: Final = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_LONGEST_SHOWN: Final = 80
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def with_defaults(schema: Schema, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy with the schema's defaults filled in; null stands for absent where one exists.

    Objects and lists of the schema become plain dicts and lists, as the other functions expect.
    Integral floats become the integers they are (`3128.0`), as JSON knows only numbers.
    """
    if isinstance(value, dict | Mapping) and schema.get("type") == "object":
        properties: dict[str, Schema] = schema.get("properties", {})
        others: Schema = schema.get("additionalProperties", {})
        filled = {
            key: with_defaults(properties.get(key, others), item)
            for key, item in value.items()
            if item is not None or "default" not in properties.get(key, others)
        }
        for key, node in properties.items():
            if "default" in node and key not in filled:
                filled[key] = with_defaults(node, node["default"])
        return filled
    if isinstance(value, list | tuple) and schema.get("type") == "array":
        return [with_defaults(schema["items"], item) for item in value]
    if isinstance(value, float) and value.is_integer() and _takes_integers(schema):
        return int(value)
    return value


def _takes_integers(schema: Schema) -> bool:
    return schema.get("type") == "integer" or "x-kubernetes-int-or-string" in schema


def faults(schema: Schema, value: Any, path: str) -> Iterator[FieldError]:  # noqa: ANN401
    """Yield everything wrong with a value."""
    wrong = _type_fault(schema, value)
    if wrong:
        yield FieldError(path, shown(value), wrong)
    elif isinstance(value, dict):
        yield from _object_faults(schema, value, path)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield FieldError(path, shown(value), f"must have at most {schema['maxItems']} items")
        for index, item in enumerate(value):
            yield from faults(schema["items"], item, f"{path}[{index}]")
    else:
        yield from (FieldError(path, shown(value), rule) for rule in _broken(schema, value))


def _object_faults(schema: Schema, value: dict[Any, Any], path: str) -> Iterator[FieldError]:
    properties: dict[str, Schema] = schema.get("properties", {})
    others: Schema | None = schema.get("additionalProperties")
    if len(value) > schema.get("maxProperties", len(value)):
        yield FieldError(path, shown(value), f"must have at most {schema['maxProperties']} entries")
    for key in schema.get("required", ()):
        if key not in value:
            yield FieldError(f"{path}.{key}", "", "is required")
    for key, item in value.items():
        if not isinstance(key, str) or not is_unicode(key):
            yield FieldError(path, shown(key), "every key must be text: put it in quotes")
        elif key in properties:
            yield from faults(properties[key], item, f"{path}.{key}")
        elif others is not None:
            yield from faults(others, item, at(path, key))
        else:
            yield unknown_field(path, key, item, properties)


def sound_part(schema: Schema, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return a copy of what has the right shape; the rest is left out, in a list it is None.

    CEL sees only this: its library is native code, and crashes on what is no plain data.
    """
    if isinstance(value, dict):
        known: dict[str, Schema] = schema.get("properties", {})
        others: Schema | None = schema.get("additionalProperties")
        nodes = ((key, known.get(key, others), item) for key, item in value.items())
        return {
            key: sound_part(node, item)
            for key, node, item in nodes
            if isinstance(key, str) and is_unicode(key) and node and _is_sound(node, item)
        }
    if isinstance(value, list):
        node = schema["items"]
        return [sound_part(node, item) if _is_sound(node, item) else None for item in value]
    return value


def _is_sound(schema: Schema, value: object) -> bool:
    fits = not isinstance(value, int) or -(2**63) <= value < 2**63
    return fits and _type_fault(schema, value) is None


def _type_fault(schema: Schema, value: object) -> str | None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if "x-kubernetes-int-or-string" in schema:
        return None if is_integer or isinstance(value, str) else "must be an integer or text"
    match schema["type"]:
        case "object":
            return None if isinstance(value, dict) else "must be an object"
        case "array":
            return None if isinstance(value, list) else "must be a list"
        case "boolean":
            return None if isinstance(value, bool) else "must be true or false"
        case "integer":
            return None if is_integer else "must be an integer"
        case _:
            return text_fault(value)


def text_fault(value: object) -> str | None:
    """Return what is wrong with a value that must be text, or None."""
    if isinstance(value, str):
        return None if is_unicode(value) else "must be Unicode text"
    if value is None or isinstance(value, Mapping | list | tuple | set):
        return "must be text"
    return "must be text: quote it"


def _broken(schema: Schema, value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the rules that a scalar of the right type breaks."""
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        near = nearest(value, allowed)
        yield f"must be one of {', '.join(allowed)}" + (f"; did you mean {near}?" if near else "")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield "must not be empty"
        if len(value) > schema.get("maxLength", len(value)):
            yield f"must be at most {schema['maxLength']} characters long"
    elif isinstance(value, int) and not isinstance(value, bool):
        least, most = _RANGES.get(schema.get("format", ""), _RANGES["int64"])
        least, most = schema.get("minimum", least), schema.get("maximum", most)
        if value < least:
            yield f"must be at least {least}"
        if value > most:
            yield f"must be at most {most}"


def unknown_field(path: str, key: str, value: object, known: Mapping[str, Any]) -> FieldError:
    """Describe a field that does not exist, with the nearest one that does."""
    near = nearest(key, known)
    return FieldError(
        at(path, key), shown(value), "unknown field" + (f"; did you mean {near}?" if near else "")
    )


def nearest(text: str, known: Mapping[str, Any] | list[str]) -> str | None:
    """Return the known word that somebody who wrote `text` may have meant."""
    by_folded = {word.casefold(): word for word in known}
    found = difflib.get_close_matches(text.casefold()[:64], by_folded, n=1, cutoff=0.7)
    return by_folded[found[0]] if found else None


def at(path: str, key: str) -> str:
    """Return the path of an entry: `spec.attributes.region`, `spec.attributes["a b"]`."""
    if not _PLAIN_KEY.fullmatch(key):
        key = key if len(key) <= _LONGEST_SHOWN else f"{key[:_LONGEST_SHOWN]}…"
        return f"{path}[{json.dumps(key)}]"
    return f"{path}.{key}" if path else key


def shown(value: object) -> str:
    """Return a value as short JSON, for a message."""
    try:
        text = json.dumps(value, separators=(", ", ": "), default=str)
    except (ValueError, TypeError, RecursionError):
        text = "{…}" if isinstance(value, Mapping) else "[…]"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def is_unicode(text: str) -> bool:
    """Tell whether the text can be stored: JSON escapes can smuggle in half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
