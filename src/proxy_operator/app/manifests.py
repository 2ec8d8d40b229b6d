"""Manifests: documents read from files, directories and standard input.

Nothing is written while this reads: every fault of every document is found first.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from proxy_operator.app.yaml_text import DocumentError, parse_documents

_STDIN: Final = "-"
_SUFFIXES: Final = {".yaml", ".yml", ".json"}


class ManifestError(Exception):
    """Manifests that cannot be applied. Each of `messages` is a sentence that says where."""

    def __init__(self, *messages: str) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages


class Manifest(NamedTuple):
    """One document and where it stood. Nothing is known of its content."""

    source: str
    body: dict[str, Any]


def read_manifests(
    paths: Sequence[Path], *, namespace: str | None, default: str = "default"
) -> list[Manifest]:
    """Read every document of these files and directories; `-` is standard input.

    `namespace` is that of all documents: one that names another is refused. Without it, `default`
    is that of the documents that name none.
    ManifestError with all that is wrong.
    """
    found: list[Manifest] = []
    faults: list[str] = []
    for file in _files(paths, faults):
        try:
            documents = [*_documents(_named(file), _text(file))]
        except ManifestError as err:
            faults.extend(err.messages)
            continue
        for where, body in documents:
            try:
                found.append(Manifest(where, _placed(body, namespace, default)))
            except ManifestError as err:
                faults.append(f"{where}: {err}")
    if faults:
        raise ManifestError(*faults)
    if not found:
        raise ManifestError(f"no objects in {', '.join(map(_named, paths))}")
    return found


def _files(paths: Sequence[Path], faults: list[str]) -> Iterator[Path]:
    """Yield the files to read; a directory gives those with a known suffix, by name."""
    for path in paths:
        if str(path) == _STDIN:
            yield path
            continue
        try:
            inside = path.is_dir() and sorted(p for p in path.iterdir() if p.suffix in _SUFFIXES)
        except OSError as err:
            faults.append(_unreadable(path, err))
            continue
        yield from inside or ([] if path.is_dir() else [path])


def _text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == _STDIN else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as err:
        raise ManifestError(_unreadable(path, err)) from err
    except UnicodeDecodeError as err:
        raise ManifestError(f"{_named(path)}: not UTF-8 text") from err


def _named(path: Path) -> str:
    return "standard input" if str(path) == _STDIN else str(path)


def _unreadable(path: Path, err: OSError) -> str:
    return f"{_named(path)}: {(err.strerror or str(err)).lower()}"


def _documents(source: str, text: str) -> Iterator[tuple[str, Any]]:
    try:
        documents = parse_documents(text)
    except DocumentError as err:
        raise ManifestError(f"{source}{err.place}: {err}") from err
    for number, document in enumerate(documents, start=1):
        where = source if len(documents) == 1 else f"{source} document {number}"
        if isinstance(document, dict) and document.get("kind") == "List":
            items = document.get("items")
            for index, item in enumerate(items if isinstance(items, list) else [items], start=1):
                yield f"{where} item {index}", item
        elif document is not None:
            yield where, document


def _placed(body: Any, namespace: str | None, default: str) -> dict[str, Any]:  # noqa: ANN401 - any document
    """Return the document with its namespace filled in. What else is wrong, admission says."""
    if not isinstance(body, dict):
        raise ManifestError("the document is not an object with apiVersion, kind and metadata")
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        return body
    own = meta.get("namespace")
    if own and namespace and own != namespace:
        raise ManifestError(f"metadata.namespace is {own!r}, not the {namespace!r} asked for")
    return {**body, "metadata": {**meta, "namespace": own or namespace or default}}
