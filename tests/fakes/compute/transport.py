"""Calls in process: the same shape as over HTTP, on whatever time the loop runs."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from tests.fakes.compute.faults import LoseReply, LoseRequest
from tests.fakes.compute.messages import Answer, ReplyLostError, Request
from tests.fakes.compute.service import Service


class InProcessTransport:
    """A connection to a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def request(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | Mapping[str, Any] | None = None,
    ) -> Answer:
        """Return the answer; ReplyLostError when the connection broke.

        `url` is absolute or a path. A query in it is added to `query`. Leaving early does not
        take a request back: it still takes effect when it is due.
        """
        parts = urlsplit(url)
        return await self.send(
            Request(
                method=method.upper(),
                path=unquote(parts.path),
                query={**dict(parse_qsl(parts.query, keep_blank_values=True)), **(query or {})},
                headers={k.lower(): v for k, v in (headers or {}).items()},
                body=body if isinstance(body, bytes) else _encoded(body),
            )
        )

    async def send(self, request: Request) -> Answer:
        """Carry one request, with all that strikes it."""
        call = self._service.open(request)
        struck, timeline = call.struck, self._service.world.timeline
        if isinstance(struck.fate, LoseRequest):
            await asyncio.sleep(struck.before)
            raise ReplyLostError("the connection was closed before the request was read")
        if struck.before:
            due = timeline.now() + struck.before
            timeline.at(due, call.perform_at)
            await asyncio.sleep(struck.before)
        answer = call.perform()
        if struck.after:
            await asyncio.sleep(struck.after)
        if isinstance(struck.fate, LoseReply):
            raise ReplyLostError("the connection was closed before the answer came")
        return answer


def _encoded(body: Mapping[str, Any] | None) -> bytes:
    return b"" if body is None else msgspec.json.encode(body)
