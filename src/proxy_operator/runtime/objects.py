"""The port through which everything reads and writes objects, wherever they live.

Two adapters implement it (SQLite, Kubernetes) and one contract suite holds both to it. Whoever
writes on behalf of a controller does so through `write_through.WriteThrough`, so that no pass
acts on a state older than the operator's own last write.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar


class ObjectKey(NamedTuple):
    """Identifies an object of a kind; `str()` gives `namespace/name`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Metadata(Protocol):
    """What the machinery needs to know of any object."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def deletion_timestamp(self) -> datetime | None: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def annotations(self) -> Mapping[str, str]: ...
    @property
    def finalizers(self) -> Sequence[str]: ...


class Object(Protocol):
    """Anything stored: it has metadata. Stored objects are shared and never changed in place."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Object)


def key_of(obj: Object) -> ObjectKey:
    """Return the key of an object."""
    return ObjectKey(obj.metadata.namespace, obj.metadata.name)


class ObjectList(NamedTuple, Generic[T]):
    """A consistent listing and the version to start a watch from."""

    items: list[T]
    resource_version: str
    unreadable: Sequence[str] = ()
    """Uids of objects that exist and cannot be read: whoever decides by absence counts them."""


class WatchEventType(StrEnum):
    """What happened to a watched object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class WatchEvent(NamedTuple, Generic[T]):
    """One change. A BOOKMARK has no object, only the version reached."""

    type: WatchEventType
    object: T | None
    resource_version: str


class Preconditions(NamedTuple):
    """The very object that is meant; a mismatch is a ConflictError."""

    uid: str
    resource_version: str | None = None
    """None: any version of this uid."""


class MetadataPatch(NamedTuple):
    """Changes to metadata; None as a value removes that label or annotation."""

    labels: Mapping[str, str | None] = {}
    annotations: Mapping[str, str | None] = {}
    finalizers: Sequence[str] | None = None
    """The complete new list, or None to leave it."""


class ApplyOutcome(StrEnum):
    """kubectl's words for what an apply did."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


class Applied(NamedTuple):
    """Answer of `apply`."""

    object: Object
    outcome: ApplyOutcome


class ObjectReader(Protocol):
    """Reads the truth, uncached."""

    async def get(self, kind: type[T], key: ObjectKey) -> T:
        """Return the object. NotFoundError when it is gone."""

    async def list(
        self,
        kind: type[T],
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> ObjectList[T]:
        """Return all objects at one version; `labels` must all be equal."""


class ListerWatcher(ObjectReader, Protocol):
    """What an informer needs."""

    def watch(
        self,
        kind: type[T],
        resource_version: str,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Yield every change after that version, in order, until closed.

        An object that stops matching `labels` is delivered as DELETED, with its last state.
        ExpiredError when the history no longer reaches back so far: list, then watch again.
        The stream may end by itself at any time: watch again from the last version seen.
        A BOOKMARK right at the start tells the informer that the stream stands.
        """


class ObjectClient(ListerWatcher, Protocol):
    """All verbs. Every write returns the object as stored after it."""

    async def create(self, obj: T) -> T:
        """Store a new object. AlreadyExistsError, InvalidError."""

    async def patch_metadata(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions, patch: MetadataPatch
    ) -> T:
        """Change labels, annotations, finalizers; generation stays.

        ConflictError when uid or version differ; NotFoundError when gone. Removing the last
        finalizer of a deleting object removes the object; the returned one is its last state.
        A patch that changes nothing is no write.
        """

    async def patch_status(self, obj: T) -> T:
        """Replace the stored status by the one of `obj`, and nothing else.

        The uid and resource version in `obj.metadata` are preconditions: ConflictError when they
        differ. NotFoundError when the object is gone.
        """

    async def apply(self, manifest: Mapping[str, Any]) -> Applied:
        """Make the desired state that of the manifest.

        Creates, or replaces `spec` (a field removed from the manifest is removed; for a Secret
        `data` and `type`) and merges labels and annotations. Equal content is no write.
        InvalidError names every fault.
        """

    async def delete(
        self, kind: type[T], key: ObjectKey, preconditions: Preconditions | None = None
    ) -> None:
        """Ask for deletion: `deletionTimestamp` is set while finalizers remain.

        NotFoundError when gone, ConflictError on a precondition. Repeating is harmless.
        """
