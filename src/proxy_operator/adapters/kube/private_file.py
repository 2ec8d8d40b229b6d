"""Files for secrets that must pass through one: in memory where the system can.

The rule: nobody else can open them, and they are gone after the block.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, NamedTuple


class PrivateFile(NamedTuple):
    """Open for writing and reading."""

    file: IO[bytes]
    name: str
    """By which this process can open it again."""


@contextmanager
def private_file(content: bytes = b"") -> Iterator[PrivateFile]:
    """Make a file for the length of the block, with the content written to it."""
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd"):
        with tempfile.NamedTemporaryFile() as named:  # mode 0600
            named.write(content)
            named.flush()
            yield PrivateFile(named.file, named.name)
        return
    with os.fdopen(os.memfd_create("private"), "w+b") as file:
        file.write(content)
        file.flush()
        yield PrivateFile(file, f"/proc/self/fd/{file.fileno()}")
