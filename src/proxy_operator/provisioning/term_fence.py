"""The fence of a process that leads for a term at a time."""

from proxy_operator.provisioning.errors import FencedError
from proxy_operator.runtime.term import Term


class TermFence:
    """Open while the term is (`provisioning.fence.Fence`)."""

    def __init__(self, term: Term) -> None:
        self._term = term

    @property
    def is_open(self) -> bool:
        """Tell whether the term is."""
        return self._term.is_open

    def check(self) -> None:
        """Return when a mutation may be sent now; FencedError when it may not."""
        if not self.is_open:
            raise FencedError("this process no longer leads: nothing was changed")
