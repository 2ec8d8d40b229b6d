"""What this provider needs of the Kubernetes API: five verbs of `kube.resources.ResourceClient`.

Documents are the API's own JSON and belong to the caller. Errors are those of `runtime.errors`.
"""

from collections.abc import Mapping
from typing import Protocol

from proxy_operator.adapters.kube.resources import DeleteOptions, Document, Resource
from proxy_operator.runtime.objects import ObjectKey


class ResourceClient(Protocol):
    """Namespaced objects as raw documents.

    Besides what each verb names, all raise ForbiddenError (with the server's message, which tells
    an exhausted quota from missing rights), InvalidError, and UnavailableError for whatever may
    pass by itself: no connection, no answer in time, 401, 429, 5xx.
    """

    async def get(self, resource: Resource, key: ObjectKey) -> Document:
        """Return the object as the server has it now. NotFoundError when there is none."""

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> list[Document]:
        """Return all objects with these labels, every page; None is all namespaces."""

    async def create(self, resource: Resource, document: Document, field_manager: str) -> Document:
        """Store a new object and return it as stored. AlreadyExistsError: the name is taken.

        Never sent twice: after UnavailableError the object may exist.
        """

    async def apply(self, resource: Resource, document: Document, field_manager: str) -> Document:
        """Server-side apply, forced, under this field manager; return the object as stored."""

    async def delete(
        self, resource: Resource, key: ObjectKey, options: DeleteOptions | None = None
    ) -> None:
        """Ask for an object to go, with its own grace period unless the options say otherwise.

        NotFoundError when there is none, ConflictError when it has another uid.
        """
