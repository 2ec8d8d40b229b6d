"""YAML and JSON text into documents, read as the Kubernetes API reads them.

Dates and times of day stay text, keys become text, no key stands twice, and what comes out is
made of nothing but what JSON can say.
"""

import json
import math
import re
from typing import Any, Final

import yaml

_MAX_DEPTH: Final = 64
_MAX_NODES: Final = 2_000_000
_SEVERAL: Final = (
    "a second JSON document begins here: make the objects the items of one List, or put a line"
    " --- between them"
)


class DocumentError(Exception):
    """The text is no YAML or JSON that an object can be written in."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place
        """Where, as ` line 1, column 5`; empty when only the whole is known."""


def parse_documents(text: str) -> list[Any]:
    """Return the documents of a text, empty ones as None. DocumentError."""
    try:
        return [to_json_value(document) for document in _parse(text)]
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DocumentError(str(err.problem or err.context), place) from err
    except yaml.reader.ReaderError as err:
        raise DocumentError(f"character {err.position + 1} is not allowed in YAML") from err
    except RecursionError as err:
        raise DocumentError("nested too deeply") from err
    except (yaml.YAMLError, ValueError) as err:
        raise DocumentError(str(err)) from err


def _parse(text: str) -> list[Any]:
    several: DocumentError | None = None
    if text.lstrip()[:1] in {"{", "["}:
        # JSON may be indented with tabs, which YAML forbids.
        try:
            return [json.loads(text, object_pairs_hook=_unique)]
        except json.JSONDecodeError as err:
            if text[err.pos : err.pos + 1] in {"{", "["} and _is_whole(text[: err.pos]):
                place = f" line {err.lineno}, column {err.colno}"
                several = DocumentError(_SEVERAL, place)
    try:
        return [*yaml.load_all(text, Loader=_Loader)]
    except yaml.YAMLError as err:
        raise several or err from err


def _is_whole(text: str) -> bool:
    """Tell whether this is a complete JSON document."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def to_json_value(value: Any) -> Any:  # noqa: ANN401 - whatever the document holds
    """Return a copy made of what JSON can say; keys become text. ValueError."""
    budget = [_MAX_NODES]

    def copy(part: Any, depth: int) -> Any:  # noqa: ANN401
        budget[0] -= 1
        if depth > _MAX_DEPTH:
            raise ValueError("nested too deeply")
        if budget[0] < 0:
            raise ValueError("too large once its aliases are resolved")
        if isinstance(part, dict):
            return {_key(key): copy(member, depth + 1) for key, member in part.items()}
        if isinstance(part, list):
            return [copy(member, depth + 1) for member in part]
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(f"{part} is not a number that JSON can say")
        if part is None or isinstance(part, str | bool | int | float):
            return part
        raise ValueError(f"a value of type {type(part).__name__} cannot be said in JSON")

    return copy(value, 0)


def _key(key: Any) -> str:  # noqa: ANN401 - YAML allows any
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise ValueError("a key is not text")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return found


class _Loader(yaml.CSafeLoader):
    """YAML 1.1 without dates, times of day and repeated keys; every key is text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the library's signature
        own: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key = self._text_key(key_node)
            if key in own:
                raise _at(key_node, f"key {key!r} stands twice")
            own.add(key)
        # Moves what `<<` brings in before the node's own members, which so win over it.
        self.flatten_mapping(node)
        return {self._text_key(k): self.construct_object(v, deep=deep) for k, v in node.value}

    def _text_key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise _at(node, "a key is not text")
        try:
            return _key(self.construct_object(node))
        except ValueError as err:
            raise _at(node, str(err)) from err


def _at(node: yaml.Node, problem: str) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_MERGE: Final = "tag:yaml.org,2002:merge"
_INTEGER: Final = re.compile(r"^[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|\.[0-9]+([eE][-+]?[0-9]+)?"
    r"|[0-9]+[eE][-+]?[0-9]+|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$"
)
_REPLACED: Final = {
    "tag:yaml.org,2002:int": _INTEGER,
    "tag:yaml.org,2002:float": _FLOAT,
}
_DROPPED: Final = {"tag:yaml.org,2002:timestamp", *_REPLACED}

_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _DROPPED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern in _REPLACED.items():
    _Loader.add_implicit_resolver(_tag, _pattern, list("-+.0123456789"))
