"""Plain tables as kubectl prints them: no borders, no colours, nothing cut off.

A value is made plain before it is measured, so that it keeps its column.
"""

from collections.abc import Sequence
from typing import Final

from proxy_operator.runtime.text import plain

NONE: Final = "<none>"
_GAP: Final = 3


def cell(value: object) -> str:
    """Return a value for a table; absent ones are `<none>`."""
    return NONE if value is None or value == "" else plain(str(value))


class Table:
    """Aligns rows under a header. Later rows keep the widths of the first batch, or widen them."""

    def __init__(self, header: Sequence[str]) -> None:
        self._header = tuple(header)
        self._widths = [len(title) for title in header]
        self._is_begun = False

    def lines(self, rows: Sequence[Sequence[str]]) -> list[str]:
        """Return the lines of these rows, the header before the first batch."""
        for row in rows:
            self._widths = [max(w, len(c)) for w, c in zip(self._widths, row, strict=True)]
        batch = [*rows] if self._is_begun else [self._header, *rows]
        self._is_begun = True
        return [self._line(row) for row in batch]

    def _line(self, row: Sequence[str]) -> str:
        padded = (text.ljust(width + _GAP) for text, width in zip(row, self._widths, strict=True))
        return "".join(padded).rstrip()
