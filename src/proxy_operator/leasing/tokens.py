"""Lease ids: 128 bits of the kernel's random numbers each, as 32 hexadecimal digits.

The rule: no random byte serves twice. A forked child must not go on with its parent's source.
"""

import os
from typing import Final

_DIGITS: Final = 32
_AT_ONCE: Final = 4096
"""Bytes asked for in one system call: enough for 256 ids."""


class TokenSource:
    """Makes ids nobody can guess, without a system call for every one."""

    __slots__ = ("_at", "_digits")

    def __init__(self) -> None:
        self._digits = ""
        self._at = 0

    def take(self) -> str:
        """Return an id that was never returned before."""
        start = self._at
        if start == len(self._digits):
            self._digits, start = os.urandom(_AT_ONCE).hex(), 0
        self._at = end = start + _DIGITS
        return self._digits[start:end]
