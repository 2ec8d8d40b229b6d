"""Reads the head of an HTTP answer, and not a byte more than comes with it.

Framing is llhttp's, strict: what it does not take for HTTP is a failed probe.
"""

from typing import Final, NamedTuple

import httptools

from proxy_operator.adapters.probing.channel import Channel
from proxy_operator.adapters.probing.fault import FailedProbeError
from proxy_operator.domain.health import ProbeError
from proxy_operator.runtime.clock import Clock

MOST_BYTES: Final = 16 * 1024
_END: Final = b"\r\n\r\n"


class Head(NamedTuple):
    """A final answer's status."""

    status: int
    began_at: float
    """When its first byte came, in seconds of the monotonic clock."""
    rest: bytes
    """What came after the head: of a tunnel, the peer's first bytes."""


class _Silent:
    """A listener that wants nothing: the parser is here to check and to number."""


async def read_head(channel: Channel, peer: str, clock: Clock) -> Head:
    """Read up to the end of the final answer's head; interim (1xx) answers are skipped.

    `peer` is who answers, for the clause of a fault. FailedProbeError of class protocol when it is
    not HTTP, ends early, or is longer than 16 KiB with all interim answers. OSError, ssl.SSLError.
    """
    reader = _Reader(channel, peer, clock)
    while True:
        head = await reader.next_head()
        if head.status >= 200:
            return head


class _Reader:
    def __init__(self, channel: Channel, peer: str, clock: Clock) -> None:
        self._channel = channel
        self._peer = peer
        self._clock = clock
        self._buffer = b""
        self._received = 0
        self._received_at = 0.0

    async def next_head(self) -> Head:
        parser = httptools.HttpResponseParser(_Silent())
        if not self._buffer:
            await self._receive()
        began_at, seen = self._received_at, 0
        while (end := self._buffer.find(_END, max(0, seen - len(_END) + 1))) < 0:
            # Fed as it comes, so that what is not HTTP is found out at once.
            self._feed(parser, self._buffer[seen:])
            seen = len(self._buffer)
            await self._receive()
        stop = end + len(_END)
        self._feed(parser, self._buffer[seen:stop])
        self._buffer = self._buffer[stop:]
        status: int = parser.get_status_code()
        if status < 100:
            raise self._fault("does not speak HTTP")
        return Head(status, began_at, self._buffer)

    async def _receive(self) -> None:
        if self._received >= MOST_BYTES:
            raise self._fault("sends a head without end")
        data = await self._channel.receive()
        if not data:
            where = "in the middle of its" if self._received else "without an"
            raise self._fault(f"hung up {where} answer")
        self._received += len(data)
        self._received_at = self._clock.monotonic()
        self._buffer += data

    def _feed(self, parser: httptools.HttpResponseParser, data: bytes) -> None:
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as err:
            # llhttp stops at 101, the answer to an Upgrade that no probe asks for.
            is_upgrade = parser.get_status_code() == 101
            what = "switches protocols unasked" if is_upgrade else "does not speak HTTP"
            raise self._fault(what) from err

    def _fault(self, what: str) -> FailedProbeError:
        return FailedProbeError(ProbeError.PROTOCOL, f"the {self._peer} {what}")
