"""What each verb of the object port makes of a stored object.

Pure: a document goes in, a `Decision` or an error comes out, and no document is changed in place.
Every home that keeps its objects itself decides through these functions.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    FieldError,
    InvalidError,
    NotFoundError,
)
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions, WatchEventType

Document: TypeAlias = dict[str, Any]
"""A whole object as builtins, in the form of the Kubernetes API. Read-only by agreement."""


class Kind(Protocol):
    """What the verbs need to know of a kind."""

    @property
    def kind(self) -> str: ...
    @property
    def api_version(self) -> str: ...
    @property
    def content(self) -> Sequence[str]: ...
    @property
    def has_status(self) -> bool: ...


class Target(NamedTuple):
    """The object a verb is about, and what is stored of it now."""

    kind: Kind
    key: ObjectKey
    stored: Document | None

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.key}"

    def existing(self) -> Document:
        """Return what is stored; NotFoundError when nothing is."""
        if self.stored is None:
            raise NotFoundError(f"{self} not found")
        return self.stored


class Stamp(NamedTuple):
    """What the home gives a new object."""

    uid: str
    now: str
    """RFC 3339, whole seconds."""


class Decision(NamedTuple):
    """The object after a verb; `event` is None when nothing is to be written.

    The document of a DELETED decision is the last state of the object.
    """

    document: Document
    event: WatchEventType | None


def create(
    target: Target, metadata: Mapping[str, Any], content: Document, stamp: Stamp
) -> Decision:
    """Store a new object of that content. AlreadyExistsError."""
    if target.stored is not None:
        raise AlreadyExistsError(f"{target} already exists")
    meta: Document = {"name": target.key.name, "namespace": target.key.namespace, "uid": stamp.uid}
    if target.kind.has_status:
        meta["generation"] = 1
    meta["creationTimestamp"] = stamp.now
    for field in ("labels", "annotations", "finalizers"):
        if metadata.get(field):
            meta[field] = metadata[field]
    document = {"apiVersion": target.kind.api_version, "kind": target.kind.kind, "metadata": meta}
    return Decision({**document, **content}, WatchEventType.ADDED)


def apply(target: Target, metadata: Mapping[str, Any], content: Document, stamp: Stamp) -> Decision:
    """Create, or replace the content and merge labels and annotations."""
    if target.stored is None:
        return create(target, metadata, content, stamp)
    stored = target.stored
    old_content = {name: stored[name] for name in target.kind.content if name in stored}
    meta = dict(stored["metadata"])
    for field in ("labels", "annotations"):
        if metadata.get(field):
            meta[field] = {**meta.get(field, {}), **metadata[field]}
    if content != old_content and target.kind.has_status:
        meta["generation"] = meta["generation"] + 1
    kept = {name: value for name, value in stored.items() if name not in target.kind.content}
    return _changed(stored, {**kept, **content, "metadata": meta})


def patch_metadata(target: Target, preconditions: Preconditions, patch: MetadataPatch) -> Decision:
    """Change labels, annotations and finalizers; the last finalizer takes the object along."""
    stored = target.existing()
    _check(target, preconditions)
    meta = dict(stored["metadata"])
    _merge(meta, "labels", patch.labels)
    _merge(meta, "annotations", patch.annotations)
    if patch.finalizers is not None:
        _refuse_new_finalizers(target, meta, patch.finalizers)
        _set(meta, "finalizers", list(patch.finalizers))
    document = {**stored, "metadata": meta}
    if "deletionTimestamp" in meta and not meta.get("finalizers"):
        return Decision(document, WatchEventType.DELETED)
    return _changed(stored, document)


def patch_status(target: Target, preconditions: Preconditions, status: Document) -> Decision:
    """Replace the status and nothing else."""
    stored = target.existing()
    _check(target, preconditions)
    document = dict(stored)
    _set(document, "status", status)
    return _changed(stored, document)


def delete(target: Target, preconditions: Preconditions | None, now: str) -> Decision:
    """Remove the object, or mark it as deleting while finalizers remain."""
    stored = target.existing()
    if preconditions is not None:
        _check(target, preconditions)
    meta = stored["metadata"]
    if not meta.get("finalizers"):
        return Decision(stored, WatchEventType.DELETED)
    if "deletionTimestamp" in meta:
        return Decision(stored, None)
    marked = {**stored, "metadata": {**meta, "deletionTimestamp": now}}
    return Decision(marked, WatchEventType.MODIFIED)


def with_version(document: Document, resource_version: int) -> Document:
    """Return the document as of that resource version."""
    meta = {**document["metadata"], "resourceVersion": str(resource_version)}
    return {**document, "metadata": meta}


def labels_differ(one: Document, other: Document) -> bool:
    """Tell whether a label selector may judge the two differently."""
    return bool(one["metadata"].get("labels", {}) != other["metadata"].get("labels", {}))


def _check(target: Target, preconditions: Preconditions) -> None:
    meta = target.existing()["metadata"]
    if preconditions.uid != meta["uid"]:
        raise ConflictError(
            f"{target} is another object now: its uid is {meta['uid']}, not {preconditions.uid}"
        )
    wanted = preconditions.resource_version
    if wanted is not None and wanted != meta["resourceVersion"]:
        raise ConflictError(
            f"{target} has changed: its version is {meta['resourceVersion']}, not {wanted}"
        )


def _refuse_new_finalizers(target: Target, meta: Document, finalizers: Sequence[str]) -> None:
    # Rule of the Kubernetes API: a deleting object may only lose finalizers.
    added = sorted(set(finalizers) - set(meta.get("finalizers", [])))
    if "deletionTimestamp" in meta and added:
        rule = f"no finalizer may be added while the object is being deleted: {', '.join(added)}"
        raise InvalidError(str(target), (FieldError("metadata.finalizers", "", rule),))


def _merge(meta: Document, field: str, changes: Mapping[str, str | None]) -> None:
    merged = {**meta.get(field, {}), **changes}
    _set(meta, field, {key: value for key, value in merged.items() if value is not None})


def _set(document: Document, field: str, value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Set a member, or leave it out when it is empty, so that equal objects are equal documents."""
    if value:
        document[field] = value
    else:
        document.pop(field, None)


def _changed(stored: Document, document: Document) -> Decision:
    if document == stored:
        return Decision(stored, None)
    return Decision(document, WatchEventType.MODIFIED)
