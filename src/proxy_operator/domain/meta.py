"""Object metadata, as the Kubernetes API writes it.

Read-only for everyone: metadata changes only through an `ObjectClient` call.
"""

from datetime import datetime

import msgspec

API_GROUP = "crawl.example.com"
API_VERSION = f"{API_GROUP}/v1alpha1"


class ObjectMeta(
    msgspec.Struct, kw_only=True, frozen=True, gc=False, rename="camel", omit_defaults=True
):
    """The part of `metadata` this operator reads. Unknown members are ignored on decode."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()

    @property
    def is_deleting(self) -> bool:
        """Deletion was asked for; only finalizers keep the object."""
        return self.deletion_timestamp is not None
