"""What Kubernetes asks of an object's metadata, so that a manifest moves between homes unchanged.

Rules: k8s.io/apimachinery pkg/util/validation and pkg/apis/meta/v1/validation.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from proxy_operator.adapters.admission.structural import (
    at,
    is_unicode,
    shown,
    unknown_field,
)
from proxy_operator.runtime.errors import FieldError
from proxy_operator.runtime.text import plain

# Written by the server and found in `get -o yaml`; applying them back is common and harmless.
_SERVER_OWNED: Final = frozenset(
    {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "ownerReferences",
        "selfLink",
    }
)
_KNOWN: Final = ("name", "namespace", "labels", "annotations", "finalizers", *_SERVER_OWNED)

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_DNS_LABEL: Final = re.compile(_LABEL, re.ASCII)
_NAME_PART: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_MOST_ANNOTATION_BYTES: Final = 256 * 1024
_LONGEST_NAMED: Final = 253


def admit_metadata(found: object, errors: list[FieldError]) -> dict[str, Any]:
    """Return name, namespace, labels, annotations and finalizers; append what is wrong to `errors`.

    A missing namespace is `default`. What the server owns is left out, whatever its value.
    """
    if not isinstance(found, Mapping):
        errors.append(FieldError("metadata", shown(found), "must be an object with a name"))
        return {}
    errors.extend(_unknown(found))
    admitted: dict[str, Any] = {"name": found.get("name"), "namespace": found.get("namespace")}
    if admitted["namespace"] in (None, ""):
        admitted["namespace"] = "default"
    errors.extend(_name_faults(admitted["name"], admitted["namespace"]))
    for field, faults in (("labels", _label_faults), ("annotations", _annotation_faults)):
        entries = found.get(field)
        if entries is None:
            continue
        if not isinstance(entries, Mapping):
            errors.append(FieldError(f"metadata.{field}", shown(entries), "must be an object"))
            continue
        errors.extend(faults(entries))
        if entries:
            admitted[field] = dict(entries)
    finalizers = found.get("finalizers")
    if finalizers:
        errors.extend(_finalizer_faults(finalizers))
        admitted["finalizers"] = list(finalizers) if isinstance(finalizers, list) else []
    return admitted


def subject(kind: object, manifest: Mapping[str, Any]) -> str:
    """Name an object in a sentence: `Proxy "default/p1"`. What stands there may be anything."""
    word = _cut(kind) if isinstance(kind, str) and kind else "object"
    meta = manifest.get("metadata")
    name = meta.get("name") if isinstance(meta, Mapping) else None
    if not isinstance(meta, Mapping) or not isinstance(name, str) or not name:
        return word
    namespace = meta.get("namespace")
    where = namespace if isinstance(namespace, str) and namespace else "default"
    return f'{word} "{_cut(where)}/{_cut(name)}"'


def _cut(text: str) -> str:
    return plain(text if len(text) <= _LONGEST_NAMED else f"{text[:_LONGEST_NAMED]}…")


def _unknown(found: Mapping[Any, Any]) -> Iterator[FieldError]:
    for key, value in found.items():
        if not isinstance(key, str):
            yield FieldError("metadata", shown(key), "every key must be text: put it in quotes")
        elif key == "generateName":
            yield FieldError("metadata.generateName", shown(value), "is not supported: set name")
        elif key not in _KNOWN:
            yield unknown_field("metadata", key, value, dict.fromkeys(_KNOWN))


def _name_faults(name: object, namespace: object) -> Iterator[FieldError]:
    if name is None or name == "":
        yield FieldError("metadata.name", "", "is required")
    elif not isinstance(name, str) or len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        rule = (
            "must be 1 to 253 characters of a-z 0-9 - and dots, between letters or digits"
            " (a DNS subdomain, RFC 1123)"
        )
        yield FieldError("metadata.name", shown(name), rule)
    if not isinstance(namespace, str) or len(namespace) > 63 or not _DNS_LABEL.fullmatch(namespace):
        rule = (
            "must be 1 to 63 characters of a-z 0-9 -, between letters or digits"
            " (a DNS label, RFC 1123)"
        )
        yield FieldError("metadata.namespace", shown(namespace), rule)


def _label_faults(labels: Mapping[Any, Any]) -> Iterator[FieldError]:
    for key, value in labels.items():
        yield from _key_faults("metadata.labels", key)
        path = at("metadata.labels", str(key))
        if not isinstance(value, str):
            yield FieldError(path, shown(value), "must be text: quote it")
        elif value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            rule = "must be at most 63 characters of A-Z a-z 0-9 - _ . between letters or digits"
            yield FieldError(path, shown(value), rule)


def _annotation_faults(annotations: Mapping[Any, Any]) -> Iterator[FieldError]:
    size = 0
    for key, value in annotations.items():
        yield from _key_faults("metadata.annotations", key)
        if not isinstance(value, str) or not is_unicode(value):
            path = at("metadata.annotations", str(key))
            yield FieldError(path, shown(value), "must be text: quote it")
        else:
            size += len(str(key).encode(errors="replace")) + len(value.encode())
    if size > _MOST_ANNOTATION_BYTES:
        yield FieldError("metadata.annotations", "", "must be at most 256 KiB in all")


def _key_faults(path: str, key: object) -> Iterator[FieldError]:
    """Check a qualified name; the prefix of an annotation may have upper case."""
    text = key.lower() if isinstance(key, str) and path.endswith("annotations") else key
    if not is_qualified_name(text):
        rule = (
            "key must be a name of at most 63 characters of A-Z a-z 0-9 - _ ."
            " with an optional prefix, such as example.com/team"
        )
        yield FieldError(path, shown(key), rule)


def _finalizer_faults(finalizers: object) -> Iterator[FieldError]:
    if not isinstance(finalizers, list):
        yield FieldError("metadata.finalizers", shown(finalizers), "must be a list")
        return
    for index, name in enumerate(finalizers):
        if not is_qualified_name(name) or "/" not in name:
            rule = "must be a name with a prefix, such as example.com/cleanup"
            yield FieldError(f"metadata.finalizers[{index}]", shown(name), rule)


def is_qualified_name(text: object) -> bool:
    """Tell whether this is the key of a label: `name` or `prefix/name`."""
    if not isinstance(text, str):
        return False
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME_PART.fullmatch(name) is not None


def member_faults(manifest: Mapping[Any, Any], known: tuple[str, ...]) -> Iterator[FieldError]:
    """Check the names of an object's top-level members."""
    for key, value in manifest.items():
        if not isinstance(key, str):
            yield FieldError("manifest", shown(key), "every key must be text: put it in quotes")
        elif key not in known:
            yield unknown_field("", key, value, dict.fromkeys(known))
