"""uvicorn's HTTP/1.1 protocol with the bounds that it lacks.

Framing is llhttp's and answers are uvicorn's; this adds sizes, deadlines, an orderly refusal of
what is malformed, and room for new connections. A refusal never overtakes the answer to an
earlier request of the same connection.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from proxy_operator.adapters.web.cork import CorkedTransport
from proxy_operator.adapters.web.errors import ErrorCode, error_answer
from proxy_operator.adapters.web.exchange import Response
from proxy_operator.adapters.web.limits import Limits

_VERSIONS: Final = frozenset({"1.0", "1.1"})

_MALFORMED: Final = error_answer(ErrorCode.INVALID_REQUEST, "not a well-formed HTTP/1.1 request")
_NOT_A_PROXY: Final = error_answer(
    ErrorCode.INVALID_REQUEST, "this is an API, not a proxy: lease one with POST /v1/leases"
)
_NO_HOST: Final = error_answer(ErrorCode.INVALID_REQUEST, "exactly one Host header is needed")
_HEAD_TOO_LARGE: Final = error_answer(
    ErrorCode.HEADERS_TOO_LARGE, "the request line and headers are too long"
)
_TOO_SLOW: Final = error_answer(ErrorCode.REQUEST_TIMEOUT, "the request took too long to arrive")


class _FaultError(Exception):
    """Stops the parser; the answer is kept in the protocol."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    transport: Any

    def __init__(
        self, config: Config, state: ServerState, limits: Limits, on_closed: Callable[[], None]
    ) -> None:
        super().__init__(config, state, {})
        self.access_log = False
        self._limits = limits
        self._head_seconds = limits.head_timeout.total_seconds()
        self._body_seconds = limits.body_timeout.total_seconds()
        self._on_closed = on_closed
        self._fault: Response | None = None
        self._farewell: bytes | None = None
        self._is_deaf = False
        self._is_in_body = False
        self._wire_bytes = 0
        self._unanswered = 0
        self._deadline: float | None = None
        self._write_deadline: float | None = None
        self._idle_since = 0.0

    @property
    def is_dispensable(self) -> bool:
        """No request is under way, or none that has come further than its head."""
        return self._unanswered == 0 and not self._is_in_body and not self.transport.is_closing()

    # asyncio's side

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as in uvicorn
        super().connection_made(transport)
        self.transport = CorkedTransport(transport)
        self._deadline = self.loop.time() + self._head_seconds
        if len(self.connections) > self._limits.connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self._on_closed()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._deadline = self.loop.time() + self._head_seconds
        self._unset_keepalive_if_required()
        step = self._limits.head_bytes
        if len(data) <= step:
            self._take(data)
            return
        # In steps, so that what the parser holds of an unfinished head is bounded.
        for start in range(0, len(data), step):
            if not self.transport.is_closing():
                self._take(data[start : start + step])

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_deadline = self._in(self._limits.write_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._write_deadline = None

    # the parser's side

    def on_headers_complete(self) -> None:
        version = self.parser.get_http_version()
        if self.parser.get_method() == b"CONNECT":
            self._fail(_NOT_A_PROXY)
        if version not in _VERSIONS or len(self.pipeline) >= self._limits.pipelined:
            self._fail(_MALFORMED)
        if version == "1.1" and [name for name, _ in self.headers].count(b"host") != 1:
            self._fail(_NO_HOST)
        if self._wire_bytes > self._limits.head_bytes and self._is_head_too_large():
            self._fail(_HEAD_TOO_LARGE)
        super().on_headers_complete()
        # The request keeps its list: a trailer must not pass for a header (RFC 9110 6.5.1).
        self.headers = []
        self._unanswered += 1
        self._is_in_body = True
        self._wire_bytes = 0
        self._deadline = self.loop.time() + self._body_seconds

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_body = False
        self._wire_bytes = 0
        self._deadline = None

    # the cycle's side

    def on_response_complete(self) -> None:
        self.transport.flush()
        self._unanswered -= 1
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self._farewell is not None and self._unanswered == 0:
            self._say_farewell()

    # the server's side

    def check_deadlines(self, now: float) -> None:
        """End what has taken too long; called about once a second."""
        if self._write_deadline is None and self.transport.is_closing():
            self._write_deadline = self._in(self._limits.write_timeout)
        if self._write_deadline is not None and now >= self._write_deadline:
            self.transport.abort()
        elif self._deadline is not None and now >= self._deadline:
            if self._is_deaf or not (self._wire_bytes or self._is_in_body):
                self.transport.close()
            else:
                self._refuse(_TOO_SLOW)

    def shutdown(self) -> None:
        """Let answers under way finish, then close."""
        if self._unanswered:
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    # inside

    def _in(self, span: timedelta) -> float:
        return self.loop.time() + span.total_seconds()

    def _take(self, data: bytes) -> None:
        self._wire_bytes += len(data)
        if self._is_deaf:
            if self._wire_bytes > self._limits.wire_bytes:
                self.transport.abort()
            return
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # Not upgraded: answered as it is, then closed, for what follows may be another tongue.
            self._is_deaf = True
            self.shutdown()
            return
        except httptools.HttpParserError:
            self._refuse(self._fault or _MALFORMED)
            return
        bound = self._limits.wire_bytes if self._is_in_body else self._limits.head_bytes
        if self._wire_bytes > bound:
            self._refuse(_MALFORMED if self._is_in_body else _HEAD_TOO_LARGE)

    def _is_head_too_large(self) -> bool:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        return size > self._limits.head_bytes

    def _fail(self, answer: Response) -> None:
        self._fault = answer
        raise _FaultError

    def _refuse(self, answer: Response) -> None:
        """Take nothing more; say why as soon as the requests before are answered."""
        self._is_deaf = True
        self._wire_bytes = 0
        if self._is_in_body:
            if self.cycle.response_started:
                # Answered from its head alone: there is nothing to add.
                self.transport.close()
                return
            self._drop_unread()
        self._farewell = _render(answer)
        if self._unanswered == 0:
            self._say_farewell()

    def _drop_unread(self) -> None:
        """Forget the request whose body is unreadable: its application must not be called."""
        self._unanswered -= 1
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
            return
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def _say_farewell(self) -> None:
        if self._farewell is None or self.transport.is_closing():
            return
        self.transport.write(self._farewell)
        self._farewell = None
        self._deadline = self._in(self._limits.linger)
        # Closing with unread input would reset the connection, and the answer might be lost.
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _make_room(self) -> None:
        everybody = cast("set[BoundedProtocol]", self.connections)
        others = [c for c in everybody if c is not self and c.is_dispensable]
        if others:
            min(others, key=BoundedProtocol._age).transport.close()
        else:
            self.transport.abort()

    def _age(self) -> tuple[bool, float]:
        """Order of going: the longest idle first, then who has waited longest with a head.

        Somebody who opens connections and says nothing must not keep the others out.
        """
        if self._deadline is None:
            return False, self._idle_since
        return True, self._deadline


def _render(answer: Response) -> bytes:
    lines = [STATUS_LINE[answer.status]]
    lines += [b"%b: %b\r\n" % pair for pair in (*answer.headers, (b"connection", b"close"))]
    return b"".join([*lines, b"\r\n", answer.body])
