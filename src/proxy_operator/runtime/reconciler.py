"""What a controller runs, and the four outcomes of one pass."""

from datetime import timedelta
from typing import NamedTuple, Protocol

from proxy_operator.runtime.objects import ObjectKey


class Result(NamedTuple):
    """A pass that went well. With no `requeue_after`, an event will come."""

    requeue_after: timedelta | None = None


class TerminalError(Exception):
    """Retrying cannot help: the controller stops until the object or its inputs change."""


class Reconciler(Protocol):
    """One pass over one object."""

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the world closer to what the object asks for.

        Any exception but TerminalError means: again, with backoff.
        """
