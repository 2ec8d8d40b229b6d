"""The four calls, each one request or, for the list, one request a page."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from proxy_operator.adapters.providers.gcp.errors import Call, error_of, error_of_operation
from proxy_operator.adapters.providers.gcp.session import Document, Session
from proxy_operator.provisioning.errors import (
    InstanceNotFoundError,
    ProviderError,
    TransientProviderError,
)

_PAGE: Final = "500"
"""The most that the API gives at once."""


class Listing(NamedTuple):
    """Instances of all zones that could be asked."""

    items: list[Document]
    complete: bool
    zones: frozenset[str]
    """Every zone that the answer speaks of, those without an instance too."""


class ComputeApi:
    """Instances of one project. Every error is one of the provider contract."""

    def __init__(self, session: Session, project: str) -> None:
        self._session = session
        self.project = project
        self._base = f"/compute/v1/projects/{project}"

    async def insert(self, zone: str, body: Document, request_id: str) -> ProviderError | None:
        """Ask for an instance; the same request id again tells what came of it.

        Raises when the request itself was refused. Returns why the accepted one has failed, or
        None. NameTakenError, either way: one of that name exists.
        """
        what = f"create instance {body['name']} in zone {zone}"
        path = f"{self._base}/zones/{zone}/instances"
        reply = await self._session.send("POST", path, {"requestId": request_id}, body)
        if not 200 <= reply.status < 300:
            raise error_of(Call.INSERT, what, reply)
        return error_of_operation(Call.INSERT, what, reply.body)

    async def get(self, zone: str, name: str) -> Document | None:
        """Return the instance as it is now, or None. InvalidPathError may mean a wrong zone."""
        what = f"read instance {name} in zone {zone}"
        reply = await self._session.send("GET", self._path(zone, name), {})
        if not 200 <= reply.status < 300:
            error = error_of(Call.GET, what, reply)
            if isinstance(error, InstanceNotFoundError):
                return None
            raise error
        if reply.body.get("name") != name:
            raise TransientProviderError(f"could not {what}: the answer is no instance")
        return reply.body

    async def delete(self, zone: str, name: str) -> None:
        """Ask for the instance to go; one that is gone is no error."""
        what = f"delete instance {name} in zone {zone}"
        reply = await self._session.send("DELETE", self._path(zone, name), {})
        if not 200 <= reply.status < 300:
            error = error_of(Call.DELETE, what, reply)
            if isinstance(error, InstanceNotFoundError):
                return
            raise error
        failed = error_of_operation(Call.DELETE, what, reply.body)
        if failed is not None:
            raise failed

    async def list(self, label: str, value: str | None) -> Listing:
        """Return every instance with that label, and whether all zones answered.

        None is any value.
        """
        query = {
            "filter": f"labels.{label}:*" if value is None else f'labels.{label}="{value}"',
            "maxResults": _PAGE,
            "returnPartialSuccess": "true",
        }
        items: list[Document] = []
        is_complete = True
        seen: set[str] = set()
        zones: set[str] = set()
        while True:
            page = await self._page(query)
            is_complete = is_complete and not _is_partial(page)
            for name, scope in (page.get("items") or {}).items():
                zones.add(name.removeprefix("zones/"))
                items += scope.get("instances") or ()
            token = page.get("nextPageToken")
            if not token:
                return Listing(items, is_complete, frozenset(zones))
            if token in seen:
                raise TransientProviderError("could not list instances: the pages go in a circle")
            seen.add(token)
            query = {**query, "pageToken": token}

    async def _page(self, query: dict[str, str]) -> Document:
        reply = await self._session.send("GET", f"{self._base}/aggregated/instances", query)
        if not 200 <= reply.status < 300:
            raise error_of(Call.LIST, "list instances", reply)
        if "items" not in reply.body and "kind" not in reply.body:
            raise TransientProviderError("could not list instances: the answer is no list")
        return reply.body

    def _path(self, zone: str, name: str) -> str:
        return f"{self._base}/zones/{zone}/instances/{name}"


def _is_partial(page: Document) -> bool:
    return bool(page.get("unreachables")) or any(
        code != "NO_RESULTS_ON_PAGE" for code in _warnings(page)
    )


def _warnings(page: Document) -> Iterator[str]:
    for holder in (page, *(page.get("items") or {}).values()):
        warning = holder.get("warning")
        if warning:
            yield warning.get("code", "")
