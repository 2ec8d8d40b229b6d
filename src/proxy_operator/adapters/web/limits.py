"""What one connection, and all of them together, may take of the operator."""

from datetime import timedelta

import msgspec


class Limits(msgspec.Struct, kw_only=True, frozen=True):
    """Bounds of a server."""

    head_bytes: int = 16 * 1024
    """Request line and headers."""
    body_bytes: int = 64 * 1024
    head_timeout: timedelta = timedelta(seconds=10)
    """From the first byte of a request (or the connection) to the end of its headers."""
    body_timeout: timedelta = timedelta(seconds=20)
    """From the end of the headers to the end of the body."""
    write_timeout: timedelta = timedelta(seconds=60)
    """From a full send buffer to one that drains."""
    idle_timeout: timedelta = timedelta(seconds=75)
    """Between two requests."""
    linger: timedelta = timedelta(seconds=1)
    """How long what still comes in is thrown away after a last answer, so that it is read."""
    connections: int = 512
    pipelined: int = 16
    """Requests of one connection that may wait for their turn."""

    @property
    def wire_bytes(self) -> int:
        """Most bytes spent on one body, framing included: single-byte chunks cost six each."""
        return 8 * self.body_bytes
