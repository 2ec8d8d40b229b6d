"""A server of the tests' own, in a thread of its own, from the start to the end of a block."""

from abc import ABC, abstractmethod
from typing import Self

from tests.integration.loops import LoopThread


class Listener(ABC):
    """Listens on a port of its own until closed. Its methods may be called in any thread."""

    def __init__(self) -> None:
        """Listen. Whatever `_start` needs must be there before."""
        self._loop = LoopThread()
        self._loop.run(self._start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._end())
        self._loop.close()

    @abstractmethod
    async def _start(self) -> None: ...

    @abstractmethod
    async def _end(self) -> None: ...
