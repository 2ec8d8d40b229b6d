"""What this provider needs of HTTP: one authorized request at a time, sent once."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

Document = dict[str, Any]
"""A JSON object of the API."""


class Reply(NamedTuple):
    """An answer, whatever its status."""

    status: int
    body: Document
    """Empty when the answer was no JSON object."""


class Session(Protocol):
    """Authorized requests to the Compute Engine API."""

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None = None,
    ) -> Reply:
        """Send one request, never a second time, and return the whole answer.

        `path` starts after the endpoint. TransientProviderError: no answer came, so the request
        may have had its effect. EnvironmentProviderError: there are no usable credentials, and
        nothing was sent.
        """

    async def close(self) -> None:
        """Let go of connections; nothing is sent afterwards."""
