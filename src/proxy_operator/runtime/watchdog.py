"""Ends a process whose event loop stands still for longer than its leadership is good for.

The rule: nothing here may wait for the loop, for a lock or for whoever reads stderr. A stall that
holds the interpreter itself stops this thread too, but also every other deed; the process is
ended as soon as that is over.
"""

import contextlib
import itertools
import os
import select
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

from proxy_operator.runtime.clock import boottime

EXIT_CODE: Final = 70
"""EX_SOFTWARE of sysexits.h."""

_LONGEST_SLEEP: Final = 1.0
"""Seconds between two looks. Waiting does not count suspended time, so it must be short."""
_SHORTEST_SLEEP: Final = 0.01
_STDERR: Final = 2
_STDERR_PATIENCE: Final = 0.2
_FRAMES: Final = 8


class Watchdog:
    """One thread while armed, none while not. Arm and disarm it in the thread of the loop."""

    def __init__(self, clock: Callable[[], float] = boottime) -> None:
        """`clock` gives seconds since boot, suspended time included."""
        self._clock = clock
        self._until = 0.0
        self._watched = 0
        self._disarmed: threading.Event | None = None

    def arm(self, until: float) -> None:
        """End the process at that boot time, unless armed anew or disarmed before."""
        self._until = until
        if self._disarmed is None:
            self._watched = threading.get_ident()
            self._disarmed = threading.Event()
            threading.Thread(
                target=self._watch, args=(self._disarmed,), name="watchdog", daemon=True
            ).start()

    def disarm(self) -> None:
        """Let the process live. Harmless when not armed."""
        if self._disarmed is not None:
            self._disarmed.set()
            self._disarmed = None

    def _watch(self, disarmed: threading.Event) -> None:
        while True:
            left = self._until - self._clock()
            if disarmed.wait(min(_LONGEST_SLEEP, max(_SHORTEST_SLEEP, left))):
                return
            overdue = self._clock() - self._until
            if overdue >= 0:
                self._end(overdue)

    def _end(self, overdue: float) -> None:
        try:
            where = _stack_of(self._watched)
            _say(
                f"watchdog: leadership expired {overdue:.1f} s ago and was neither renewed nor"
                " given up: the event loop stalled, work did not end, or the process was stopped or"
                f" suspended. Ending it with exit code {EXIT_CODE}. The loop is at {where}"
            )
        finally:
            os._exit(EXIT_CODE)


def _stack_of(thread: int) -> str:
    """Return where a thread stands, innermost call first: places only, no values."""
    # The interpreter offers no other way to see the stack of another thread.
    frame = sys._current_frames().get(thread)  # noqa: SLF001
    return " < ".join(itertools.islice(_places(frame), _FRAMES)) or "an unknown place"


def _places(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        code = frame.f_code
        yield f"{code.co_qualname} ({code.co_filename}:{frame.f_lineno})"
        frame = frame.f_back


def _say(line: str) -> None:
    # A full pipe would block this thread, and may be the very thing that blocks the loop. One that
    # is ready takes 4096 bytes (PIPE_BUF) at once.
    with contextlib.suppress(OSError, ValueError):
        if select.select([], [_STDERR], [], _STDERR_PATIENCE)[1]:
            os.write(_STDERR, f"{line}\n".encode(errors="replace")[-4096:])
