"""The bridge from ASGI to an `Endpoint`: reads a bounded body, writes one answer.

A body is read only after the endpoint has seen the head and did not refuse it.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from proxy_operator.adapters.web.exchange import Endpoint, Headers, Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_BODILESS = frozenset({"GET", "HEAD", "DELETE"})


class Application:
    """An ASGI 3 application (HTTP only) around an endpoint."""

    def __init__(self, endpoint: Endpoint, body_limit: int) -> None:
        self._endpoint = endpoint
        self._body_limit = body_limit

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        path = scope["raw_path"].decode("ascii")
        headers: Headers = scope["headers"]
        body = b""
        if method not in _BODILESS or _announces_body(headers):
            refusal = self._endpoint.refuse(method, path, headers)
            if refusal is not None:
                await _answer(send, refusal)
                return
            read = await self._read(receive)
            if read is None:
                return
            body = read
        query = scope["query_string"].decode("ascii")
        await _answer(send, self._endpoint.dispatch(method, path, query, headers, body))

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, cut once it is over the limit; None when the client has gone."""
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part: bytes = message["body"]
            body = body + part if body else part
            if len(body) > self._body_limit or not message["more_body"]:
                return body


def _announces_body(headers: Headers) -> bool:
    names = [name for name, _ in headers]
    return b"content-length" in names or b"transfer-encoding" in names


async def _answer(send: Send, response: Response) -> None:
    status, headers, body = response
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
