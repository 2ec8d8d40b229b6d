"""A transport that sends the head and the body of an answer together.

uvicorn writes them one after the other, at the price of a second system call and packet.
"""

import asyncio
from typing import Any, Final

_INTERIM: Final = b"HTTP/1.1 100 "


class CorkedTransport:
    """Holds what is written until `flush`, `close` or `write_eof`.

    An interim answer goes out at once: the client waits for it before it sends the body.
    """

    __slots__ = ("_held", "_inner", "is_closing")

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self._held: list[bytes] = []
        self.is_closing = inner.is_closing

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._inner, name)

    def write(self, data: bytes) -> None:
        self._held.append(data)
        if data.startswith(_INTERIM):
            self.flush()

    def flush(self) -> None:
        """Send what was held."""
        if self._held:
            data = b"".join(self._held)
            self._held.clear()
            self._inner.write(data)

    def write_eof(self) -> None:
        self.flush()
        self._inner.write_eof()

    def close(self) -> None:
        self.flush()
        self._inner.close()

    def abort(self) -> None:
        self._held.clear()
        self._inner.abort()
