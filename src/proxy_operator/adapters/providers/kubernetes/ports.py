"""What this provider needs of the Kubernetes API: five verbs on three core/v1 resources.

Documents are the API's own JSON and belong to the caller. Errors are those of `runtime.errors`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

Document: TypeAlias = dict[str, Any]


class Resource(StrEnum):
    """Plural names below /api/v1/namespaces/NAMESPACE/."""

    PODS = "pods"
    CONFIG_MAPS = "configmaps"
    SECRETS = "secrets"


class ResourceClient(Protocol):
    """Namespaced objects as raw documents.

    Besides what each verb names, all raise ForbiddenError (with the server's message, which tells
    an exhausted quota from missing rights), InvalidError, and UnavailableError for whatever may
    pass by itself: no connection, no answer in time, 401, 429, 5xx.
    """

    async def get(self, resource: Resource, namespace: str, name: str) -> Document:
        """Return the object as the server has it now. NotFoundError when there is none."""

    async def list(
        self, resource: Resource, *, namespace: str | None, labels: Mapping[str, str]
    ) -> list[Document]:
        """Return all objects with these labels, every page; None is all namespaces."""

    async def create(self, resource: Resource, document: Document) -> Document:
        """Store a new object and return it as stored. AlreadyExistsError: the name is taken.

        Never sent twice: after UnavailableError the object may exist.
        """

    async def apply(self, resource: Resource, document: Document, *, manager: str) -> Document:
        """Server-side apply, forced, under this field manager; return the object as stored."""

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str | None = None
    ) -> None:
        """Ask for an object to go, with its own grace period.

        NotFoundError when there is none, ConflictError when it has another uid.
        """
