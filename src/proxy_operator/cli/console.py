"""A running account: lines that stay, and on a terminal one live line below them."""

import shutil
import sys
from typing import Final, TextIO

from proxy_operator.runtime.text import plain

_CLEAR: Final = "\r\x1b[K"


class Console:
    """Writes to a stream; the live line only where a person sees it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._live = ""

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self._clear()
        self._stream.write(f"{plain(text)}\n")
        self._stream.flush()

    def live(self, text: str) -> None:
        """Replace the live line; nothing when this is no terminal."""
        if not self._is_terminal or text == self._live:
            return
        self._clear()
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(plain(text)[:width])
        self._stream.flush()
        self._live = text

    def _clear(self) -> None:
        if self._live:
            self._stream.write(_CLEAR)
            self._live = ""
