"""Bytes that stand in a document or in a file beside it. Files may be replaced while we run."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from proxy_operator.adapters.kube.access import ClusterConfigError

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class Material:
    """A certificate, a key or a token, and what a message calls its place."""

    where: str
    """`/home/me/.kube/config, user "me", client-key`."""
    content: bytes | Path = field(repr=False)

    def read(self) -> bytes:
        """Return the bytes as they are now. ClusterConfigError names the file."""
        if isinstance(self.content, bytes):
            return self.content
        try:
            return self.content.read_bytes()
        except OSError as err:
            reason = (err.strerror or "input/output error").lower()
            raise ClusterConfigError(
                f"{self.where}: {self.content} cannot be read: {reason}"
            ) from err

    def stamp(self) -> Stamp | None:
        """Return what changes when the file is replaced or rewritten; None when there is none."""
        return None if isinstance(self.content, bytes) else stamp_of(self.content)


def stamp_of(path: Path) -> Stamp | None:
    """Return inode, time and size of the file behind all links, or None when it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)
