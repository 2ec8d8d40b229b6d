"""What keeps an object that was asked to go: the words of every command that waits for one.

Only finalizers keep an object. Ours goes with the instance, and the condition Provisioned says what
holds that up; nobody here may remove another.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from proxy_operator.domain.condition import DELETION_WAITS, ConditionType, find
from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret

_MOST_NAMED: Final = 3
_LONGEST_REASON: Final = 200


def foreign_finalizers(kind: type[object], finalizers: Iterable[str]) -> list[str]:
    """Return those that no operator of ours ever removes; on a Secret that is every one."""
    return [name for name in finalizers if kind is not Proxy or name != FINALIZER]


def has_instance(obj: Proxy | Secret) -> bool:
    """Tell whether an operator still has work to do before this object can go."""
    return isinstance(obj, Proxy) and FINALIZER in obj.metadata.finalizers


def obstacle(obj: Proxy | Secret) -> str | None:
    """Say what an object waits for; None when it is not held up, or may go by itself."""
    reason = _reason(obj)
    return None if reason is None else f"waiting for {obj.metadata.name}: {reason}"


def _reason(obj: Proxy | Secret) -> str | None:
    if not obj.metadata.is_deleting:
        return None
    if isinstance(obj, Proxy) and has_instance(obj):
        row = find(obj.status.conditions, ConditionType.PROVISIONED)
        _, _, reason = ("" if row is None else row.message).partition(DELETION_WAITS)
        return " ".join(reason.split()) or None
    foreign = foreign_finalizers(type(obj), obj.metadata.finalizers)
    if not foreign:
        return None
    if len(foreign) == 1:
        return f"the finalizer {foreign[0]} of somebody else is still set"
    return f"the finalizers {', '.join(foreign)} of somebody else are still set"


def reason_for_all(objects: Iterable[Proxy | Secret]) -> str:
    """Return ` (why)` for the end of a sentence about objects that one short reason holds up.

    Nothing when there are several, for then no one of them tells it all.
    """
    reasons = {_reason(obj) for obj in objects}
    reason = reasons.pop() if len(reasons) == 1 else None
    return f" ({reason})" if reason is not None and len(reason) <= _LONGEST_REASON else ""


def names_of(objects: Sequence[Proxy | Secret]) -> str:
    """Name the first few of these objects, and say how many more there are."""
    names = ", ".join(obj.metadata.name for obj in objects[:_MOST_NAMED])
    more = len(objects) - _MOST_NAMED
    return f"{names} and {more} more" if more > 0 else names
