"""What keeps an object that was asked to go: the words of every command that waits for one.

Only finalizers keep an object. Ours goes with the instance; nobody here may remove another.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from proxy_operator.domain.names import FINALIZER
from proxy_operator.domain.proxy import Proxy
from proxy_operator.domain.secret import Secret

_MOST_NAMED: Final = 3


def foreign_finalizers(kind: type[object], finalizers: Iterable[str]) -> list[str]:
    """Return those that no operator of ours ever removes; on a Secret that is every one."""
    return [name for name in finalizers if kind is not Proxy or name != FINALIZER]


def has_instance(obj: Proxy | Secret) -> bool:
    """Tell whether an operator still has work to do before this object can go."""
    return isinstance(obj, Proxy) and FINALIZER in obj.metadata.finalizers


def obstacle(obj: Proxy | Secret) -> str | None:
    """Say what an object waits for when our part of its deletion is done; None before that."""
    foreign = foreign_finalizers(type(obj), obj.metadata.finalizers)
    if not obj.metadata.is_deleting or has_instance(obj) or not foreign:
        return None
    name = obj.metadata.name
    if len(foreign) == 1:
        return f"waiting for {name}: the finalizer {foreign[0]} of somebody else is still set"
    listed = ", ".join(foreign)
    return f"waiting for {name}: the finalizers {listed} of somebody else are still set"


def names_of(objects: Sequence[Proxy | Secret]) -> str:
    """Name the first few of these objects, and say how many more there are."""
    names = ", ".join(obj.metadata.name for obj in objects[:_MOST_NAMED])
    more = len(objects) - _MOST_NAMED
    return f"{names} and {more} more" if more > 0 else names
