"""What the embedded store needs from outside."""

from collections.abc import Mapping
from typing import Any, Protocol


class Admission(Protocol):
    """Decides what may be stored. Called in the store's writer thread, one call at a time."""

    def admit(self, manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the object with its defaults, or raise InvalidError naming every fault.

        `manifest` is the whole object as somebody wrote it, `old` the whole stored one that it
        would change, or None.
        """
