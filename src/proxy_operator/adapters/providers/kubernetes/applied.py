"""What of an object our field manager applied, and where that differs from what we want now.

Reads `metadata.managedFields` (FieldsV1 of the structured-merge-diff library): a key is `f:NAME`
for a field, `k:{JSON}` for a list item with these key fields, `.` for the item itself. Sets of
plain values (`v:`) are not read: nothing we apply has one. A rule a visitor must keep: no value
leaves here, only paths.
"""

import json
from typing import Any, Final

from proxy_operator.adapters.kube.resources import Document

_NOTHING: Final = object()
# Part of every document's address, and owned by nobody.
_ADDRESS: Final = frozenset({"apiVersion", "kind", "metadata.name", "metadata.namespace"})


def differences(desired: Document, stored: Document, manager: str) -> list[str]:
    """Return the paths that an apply would change; empty when it would change nothing.

    Counts what we want and is not so, and what we own and no longer want.
    """
    wanted = _leaves(desired)
    fields = _fields_of(stored, manager)
    owned = _leaves(_extract(stored, fields)) if fields else {}
    actual = _leaves(stored)
    changed = {path for path, value in wanted.items() if actual.get(path, _NOTHING) != value}
    unowned = wanted.keys() - owned.keys() - _ADDRESS
    return sorted(changed | unowned | (owned.keys() - wanted.keys()))


def _fields_of(stored: Document, manager: str) -> Any:  # noqa: ANN401 - any JSON value
    for entry in stored["metadata"].get("managedFields", ()):
        if (
            entry.get("manager") == manager
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            return entry.get("fieldsV1", {})
    return {}


def _extract(value: Any, fields: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON value
    """Return the part of a value that a set of fields names."""
    inner = {key: sub for key, sub in fields.items() if key != "."}
    if not inner:
        return value
    if isinstance(value, dict):
        return {
            key[2:]: _extract(value[key[2:]], sub)
            for key, sub in inner.items()
            if key.startswith("f:") and key[2:] in value
        }
    if isinstance(value, list):
        return [
            _extract(item, sub) for item in value for key, sub in inner.items() if _names(key, item)
        ]
    return value


def _names(key: str, item: Any) -> bool:  # noqa: ANN401 - any JSON value
    if key.startswith("k:") and isinstance(item, dict):
        keys: dict[str, Any] = json.loads(key[2:])
        return all(item.get(name) == value for name, value in keys.items())
    return False


def _leaves(value: Any, path: str = "") -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Flatten a document; an item of a list goes by its uid or name where it has one."""
    if isinstance(value, dict) and value:
        children = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        children = [(f"[{_item_key(item, n)}]", item) for n, item in enumerate(value)]
    else:
        return {path: value}
    flat: dict[str, Any] = {}
    for key, item in children:
        joined = f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}"
        flat.update(_leaves(item, joined))
    return flat


def _item_key(item: Any, number: int) -> str:  # noqa: ANN401 - any JSON value
    if isinstance(item, dict):
        return str(item.get("uid") or item.get("name") or number)
    return str(number)
