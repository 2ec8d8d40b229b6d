"""A request and its answer, as handlers see them: bytes in memory, no socket.

Header names are lower case. An answer to HEAD carries the body of the GET; the server drops it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

Headers = Sequence[tuple[bytes, bytes]]

JSON: Final = b"application/json"
TEXT: Final = b"text/plain; charset=utf-8"
NO_STORE: Final = (b"cache-control", b"no-store")

_encode = msgspec.json.Encoder().encode


class Request(NamedTuple):
    """What came in. `path` is as it was sent, `params` are its decoded variable segments."""

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    params: tuple[str, ...] = ()


class Response(NamedTuple):
    """What goes out: status, headers, body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Endpoint(Protocol):
    """What a server serves. Neither call raises or blocks."""

    def refuse(self, method: str, path: str, headers: Headers) -> Response | None:
        """Answer a request whose body is not worth reading; None to have it read."""

    def dispatch(
        self, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> Response:
        """Answer a request."""


def content(status: int, kind: bytes, body: bytes, *extra: tuple[bytes, bytes]) -> Response:
    """Build an answer with a body."""
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body)), *extra]
    return Response(status, headers, body)


def json_answer(status: int, value: object, *extra: tuple[bytes, bytes]) -> Response:
    """Build an answer from a wire type."""
    return content(status, JSON, _encode(value), *extra)


def no_content() -> Response:
    """Build a 204, which has neither body nor length (RFC 9110 section 8.6)."""
    return Response(204, [], b"")


def header(headers: Headers, name: bytes) -> bytes | None:
    """Return the value of a header, or None when it is absent or given twice."""
    found: bytes | None = None
    for key, value in headers:
        if key == name:
            if found is not None:
                return None
            found = value
    return found
