"""Manifests: documents read from files, directories and standard input.

Nothing is written while this reads: every fault of every document is found first. YAML means
here what the Kubernetes API takes it for, so dates and times of day stay text.
"""

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

_STDIN: Final = "-"
_SUFFIXES: Final = {".yaml", ".yml", ".json"}
_MAX_DEPTH: Final = 64
_MAX_NODES: Final = 2_000_000


class ManifestError(Exception):
    """Manifests that cannot be applied. Each of `messages` is a sentence that says where."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages


class Manifest(NamedTuple):
    """One document and where it stood. Nothing is known of its content."""

    source: str
    body: dict[str, Any]


def read_manifests(paths: Sequence[Path], *, namespace: str | None) -> list[Manifest]:
    """Read every document of these files and directories; `-` is standard input.

    `namespace` is for documents that name none; one that names another is refused.
    ManifestError with all that is wrong.
    """
    found: list[Manifest] = []
    faults: list[str] = []
    for file in _files(paths, faults):
        try:
            source = "standard input" if str(file) == _STDIN else str(file)
            documents = [*_documents(source, _text(file))]
        except ManifestError as err:
            faults.extend(err.messages)
            continue
        for where, body in documents:
            try:
                found.append(Manifest(where, _placed(body, namespace)))
            except ManifestError as err:
                faults.append(f"{where}: {err}")
    if faults:
        raise ManifestError(*faults)
    if not found:
        raise ManifestError(f"no objects in {', '.join(map(str, paths))}")
    return found


def _files(paths: Sequence[Path], faults: list[str]) -> Iterator[Path]:
    """Yield the files to read; a directory gives those with a known suffix, by name."""
    for path in paths:
        try:
            inside = path.is_dir() and sorted(p for p in path.iterdir() if p.suffix in _SUFFIXES)
        except OSError as err:
            faults.append(_unreadable(path, err))
            continue
        yield from inside or ([] if path.is_dir() else [path])


def _text(path: Path) -> str:
    source = str(path)
    try:
        content = sys.stdin.buffer.read() if source == _STDIN else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as err:
        raise ManifestError(_unreadable(path, err)) from err
    except UnicodeDecodeError as err:
        raise ManifestError(f"{source}: not UTF-8 text") from err


def _unreadable(path: Path, err: OSError) -> str:
    return f"{path}: {(err.strerror or str(err)).lower()}"


def _documents(source: str, text: str) -> Iterator[tuple[str, Any]]:
    try:
        if text.lstrip()[:1] in {"{", "["}:
            try:
                parsed: list[Any] = [json.loads(text, object_pairs_hook=_unique)]
            except json.JSONDecodeError:
                parsed = [*yaml.load_all(text, Loader=_Loader)]
        else:
            parsed = [*yaml.load_all(text, Loader=_Loader)]
        documents = [to_json_value(document) for document in parsed]
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        place = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ManifestError(f"{source}{place}: {err.problem or err.context}") from err
    except (yaml.YAMLError, ValueError, RecursionError) as err:
        reason = "nested too deeply" if isinstance(err, RecursionError) else str(err)
        raise ManifestError(f"{source}: {reason}") from err
    for number, document in enumerate(documents, start=1):
        where = source if len(documents) == 1 else f"{source} document {number}"
        if isinstance(document, dict) and document.get("kind") == "List":
            items = document.get("items")
            for index, item in enumerate(items if isinstance(items, list) else [items], start=1):
                yield f"{where} item {index}", item
        elif document is not None:
            yield where, document


def _placed(body: Any, namespace: str | None) -> dict[str, Any]:  # noqa: ANN401 - any document
    """Return the document with its namespace filled in. What else is wrong, admission says."""
    if not isinstance(body, dict):
        raise ManifestError("the document is not an object with apiVersion, kind and metadata")
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        return body
    own = meta.get("namespace")
    if own and namespace and own != namespace:
        raise ManifestError(f"metadata.namespace is {own!r}, not the {namespace!r} asked for")
    return {**body, "metadata": {**meta, "namespace": own or namespace or "default"}}


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
    """YAML 1.1 without dates, times of day and repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - the library's signature
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


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
