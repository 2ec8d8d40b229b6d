"""Objects as JSON and YAML documents, defaults written out, members in kubectl's order.

The data of a Secret is replaced by its size: what is printed here may be pasted anywhere.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from proxy_operator.domain.kinds import format_time, to_document
from proxy_operator.domain.meta import ObjectMeta
from proxy_operator.domain.proxy import Proxy, ProxyStatus
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.text import plain_lines

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def document_of(obj: msgspec.Struct) -> dict[str, Any]:
    """Return the document of an object, without secret data."""
    document: dict[str, Any] = _plain(obj)
    if isinstance(obj, Proxy) and obj.status == ProxyStatus():
        del document["status"]
    if isinstance(obj, Secret):
        _show_annotations(document["metadata"], obj)
        document["data"] = {key: f"<{len(value)} bytes>" for key, value in sorted(obj.data.items())}
    return document


def _show_annotations(metadata: dict[str, Any], secret: Secret) -> None:
    if annotations := shown_annotations(secret):
        metadata["annotations"] = annotations
    else:
        metadata.pop("annotations", None)


def shown_annotations(obj: Proxy | Secret) -> dict[str, str]:
    """Return the annotations that may be shown: not the manifest that kubectl keeps of a Secret."""
    kept = obj.metadata.annotations
    if not isinstance(obj, Secret):
        return kept
    return {key: value for key, value in kept.items() if key != _LAST_APPLIED}


def list_of(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the document that holds several."""
    return {
        "apiVersion": "v1",
        "items": list(documents),
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def to_json(document: dict[str, Any]) -> str:
    """Write a document as JSON, indented, with a final newline."""
    text = json.dumps(document, indent=4, sort_keys=True, ensure_ascii=False)
    if not _is_plain(text):
        # In JSON's own escapes, so that what is printed still means the same.
        text = json.dumps(document, indent=4, sort_keys=True)
    return f"{text}\n"


def to_yaml(document: dict[str, Any]) -> str:
    """Write a document as YAML."""
    import yaml  # noqa: PLC0415 - a table needs no YAML

    def dump(*, allow_unicode: bool) -> str:
        text: str = yaml.dump(
            document,
            Dumper=yaml.CSafeDumper,
            default_flow_style=False,
            allow_unicode=allow_unicode,
            width=1000,
        )
        return text

    text = dump(allow_unicode=True)
    return text if _is_plain(text) else dump(allow_unicode=False)


def _is_plain(text: str) -> bool:
    return plain_lines(text) == text


def _plain(value: Any) -> Any:  # noqa: ANN401 - any part of an object
    """Encode a struct by its wire names, leaving out what is absent or empty."""
    if isinstance(value, ObjectMeta):
        return {"namespace": value.namespace, **to_document(value)}
    if isinstance(value, msgspec.Struct):
        members = (
            (field.encode_name, getattr(value, field.name))
            for field in msgspec.structs.fields(value)
        )
        return {name: _plain(member) for name, member in members if member not in (None, {}, ())}
    if isinstance(value, dict):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return _scalar(value)


def _scalar(value: Any) -> Any:  # noqa: ANN401 - any leaf of an object
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime):
        return format_time(value)
    return msgspec.to_builtins(value)
