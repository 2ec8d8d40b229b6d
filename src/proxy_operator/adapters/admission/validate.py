"""The one door for manifests: what comes out is complete, valid, and decodes into domain types.

Evaluates the very CRD document that a cluster would, so both homes refuse the same manifests.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from proxy_operator.adapters.admission import secrets
from proxy_operator.adapters.admission.cel import Cel, check_rules
from proxy_operator.adapters.admission.crd import proxy_schema
from proxy_operator.adapters.admission.metadata import admit_metadata, member_faults, subject
from proxy_operator.adapters.admission.structural import (
    faults,
    nearest,
    shown,
    sound_part,
    with_defaults,
)
from proxy_operator.domain import meta, proxy, secret
from proxy_operator.runtime.errors import FieldError, InvalidError

_Content = Callable[[Mapping[Any, Any], Mapping[str, Any] | None, list[FieldError]], dict[str, Any]]


class _Kind(NamedTuple):
    """What differs from kind to kind."""

    api_version: str
    members: tuple[str, ...]
    """Top-level members that a manifest may have."""
    admit_content: _Content
    """Returns everything beside metadata; appends faults."""


class Admission:
    """Defaults and validates manifests. Cheap to make: the schema and CEL load on first use."""

    def __init__(self) -> None:
        self._cel = Cel()
        members = ("apiVersion", "kind", "metadata", "spec", "status")
        self._kinds: Final = {
            proxy.KIND: _Kind(meta.API_VERSION, members, self._admit_proxy),
            secret.KIND: _Kind(secret.API_VERSION, secrets.MEMBERS, secrets.admit_content),
        }

    def admit(
        self, manifest: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the object to store: defaults applied, no status, no server-owned metadata.

        `old` is the stored object when this is an update; transition rules apply then. The
        manifest is not changed. InvalidError names every fault. Admitting the result again gives
        the same result.
        """
        if not isinstance(manifest, Mapping):
            wrong = FieldError("manifest", shown(manifest), "must be an object")
            raise InvalidError("manifest", (wrong,))
        word = manifest.get("kind")
        about = subject(word, manifest)
        kind = self._kinds.get(word) if isinstance(word, str) else None
        if kind is None:
            raise InvalidError(about, (self._unknown_kind(word),))
        if manifest.get("apiVersion") != kind.api_version:
            rule = f"must be {kind.api_version} for kind {word}"
            found = manifest.get("apiVersion")
            wrong = FieldError("apiVersion", "" if found is None else shown(found), rule)
            raise InvalidError(about, (wrong,))
        errors = [*member_faults(manifest, kind.members)]
        metadata = admit_metadata(manifest.get("metadata"), errors)
        content = kind.admit_content(manifest, old, errors)
        if errors:
            raise InvalidError(about, tuple(errors))
        return {"apiVersion": kind.api_version, "kind": word, "metadata": metadata, **content}

    def _unknown_kind(self, word: object) -> FieldError:
        stored = " and ".join(f"{name} ({kind.api_version})" for name, kind in self._kinds.items())
        near = nearest(word, self._kinds) if isinstance(word, str) else None
        hint = f"; did you mean {near}?" if near else ""
        rule = f"must be a known kind, {stored}{hint}"
        return FieldError("kind", "" if word is None else shown(word), rule)

    def _admit_proxy(
        self,
        manifest: Mapping[Any, Any],
        old: Mapping[str, Any] | None,
        errors: list[FieldError],
    ) -> dict[str, Any]:
        if "spec" not in manifest:
            errors.append(FieldError("spec", "", "is required"))
            return {}
        schema = _spec_schema()
        spec = with_defaults(schema, manifest["spec"])
        found = [*faults(schema, spec, "spec")]
        if isinstance(spec, dict):
            earlier = with_defaults(schema, old.get("spec")) if old else None
            was = sound_part(schema, earlier) if isinstance(earlier, dict) else None
            check_rules(self._cel, schema, sound_part(schema, spec), was, found, path="spec")
        errors.extend(found)
        return {"spec": spec}


@functools.cache
def _spec_schema() -> dict[str, Any]:
    schema: dict[str, Any] = proxy_schema()["properties"]["spec"]
    return schema
