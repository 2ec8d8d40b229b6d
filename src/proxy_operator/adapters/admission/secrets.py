"""Admission of a core/v1 Secret. No error ever shows a value of `data` or `stringData`.

Rules: k8s.io/kubernetes pkg/apis/core/validation, ValidateSecret.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from proxy_operator.adapters.admission.structural import at, is_unicode, shown
from proxy_operator.runtime.errors import FieldError

MEMBERS: Final = (
    "apiVersion",
    "kind",
    "metadata",
    "data",
    "stringData",
    "type",
    "immutable",
)
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}", re.ASCII)
_MOST_BYTES: Final = 1024 * 1024
_DEFAULT_TYPE: Final = "Opaque"


def admit_content(
    manifest: Mapping[Any, Any], old: Mapping[str, Any] | None, errors: list[FieldError]
) -> dict[str, Any]:
    """Return `data` (base64, `stringData` merged in) and `type`; append faults to `errors`."""
    content: dict[str, bytes] = {}
    for field in ("data", "stringData"):
        entries = manifest.get(field)
        if entries is None:
            continue
        if not isinstance(entries, Mapping):
            errors.append(FieldError(field, "", "must be an object"))
            continue
        for key, value in entries.items():
            raw = _bytes_of(field, key, value, errors)
            if raw is not None:
                content[str(key)] = raw
    if sum(map(len, content.values())) > _MOST_BYTES:
        errors.append(FieldError("data", "", "must be at most 1 MiB in all"))
    if manifest.get("immutable"):
        rule = "is not supported: a Secret is edited in place to rotate it"
        errors.append(FieldError("immutable", shown(manifest["immutable"]), rule))
    return {
        "data": {key: base64.b64encode(raw).decode() for key, raw in content.items()},
        "type": _type_of(manifest, old, errors),
    }


def _type_of(
    manifest: Mapping[Any, Any], old: Mapping[str, Any] | None, errors: list[FieldError]
) -> str:
    found = manifest.get("type") or _DEFAULT_TYPE
    if not isinstance(found, str) or not is_unicode(found):
        errors.append(FieldError("type", shown(found), "must be text"))
        return _DEFAULT_TYPE
    if old is not None and found != old.get("type", _DEFAULT_TYPE):
        errors.append(FieldError("type", shown(found), "type is immutable"))
    return found


def _bytes_of(field: str, key: object, value: object, errors: list[FieldError]) -> bytes | None:
    """Return the bytes of one entry, or None when there is something wrong with it."""
    if not isinstance(key, str) or not _KEY.fullmatch(key) or key == "." or key.startswith(".."):
        rule = "key must be 1 to 253 characters of A-Z a-z 0-9 - _ . and not start with .."
        errors.append(FieldError(field, shown(key), rule))
        return None
    path = at(field, key)
    if not isinstance(value, str) or not is_unicode(value):
        errors.append(FieldError(path, "", "must be text: quote it"))
        return None
    if field == "stringData":
        return value.encode()
    try:
        # Line breaks are allowed, as Go's decoder skips them: YAML folds long values.
        return base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        errors.append(FieldError(path, "", "must be base64; write plain text under stringData"))
        return None
