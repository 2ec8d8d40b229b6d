"""Structural OpenAPI v3 schemas from msgspec types, as apiextensions.k8s.io/v1 accepts them.

No `$ref`, no `nullable` (None is absence), no `anyOf` but that of `x-kubernetes-int-or-string`.
"""

import inspect
from enum import Enum
from typing import Any, Final

import msgspec
from msgspec import inspect as types

Schema = dict[str, Any]

_INT_OR_STRING: Final = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}


def schema_of(struct: type[msgspec.Struct], *, with_defaults: bool) -> Schema:
    """Return the schema of a struct; `with_defaults` writes its scalar and object defaults."""
    return _of(_struct(struct), with_defaults=with_defaults)


def _of(found: types.Type, *, with_defaults: bool) -> Schema:
    """Build the schema of one node, outer annotations first."""
    if isinstance(found, types.Metadata):
        inner = _of(found.type, with_defaults=with_defaults)
        extra = found.extra_json_schema or {}
        merged = {**inner, **extra}
        if "description" in merged:
            merged = {"description": merged.pop("description"), **merged}
        if found.extra and "rules" in found.extra:
            merged["x-kubernetes-validations"] = [r.as_schema() for r in found.extra["rules"]]
        return merged
    if isinstance(found, types.StructType):
        return _of_struct(found, with_defaults=with_defaults)
    if isinstance(found, types.DictType):
        return _present(
            type="object",
            additionalProperties=_of(found.value_type, with_defaults=with_defaults),
            minProperties=found.min_length,
            maxProperties=found.max_length,
        )
    if isinstance(found, types.VarTupleType):
        return _present(
            type="array",
            items=_of(found.item_type, with_defaults=with_defaults),
            minItems=found.min_length,
            maxItems=found.max_length,
            **{"x-kubernetes-list-type": "atomic"},
        )
    if isinstance(found, types.UnionType):
        return _of_union(found, with_defaults=with_defaults)
    return _of_scalar(found)


def _of_struct(found: types.StructType, *, with_defaults: bool) -> Schema:
    properties: dict[str, Schema] = {}
    for field in found.fields:
        node = _of(field.type, with_defaults=with_defaults)
        default = _default_of(field) if with_defaults else None
        properties[field.encode_name] = node if default is None else {**node, "default": default}
    return _present(
        description=inspect.cleandoc(found.cls.__doc__ or "").partition("\n\n")[0] or None,
        type="object",
        required=[field.encode_name for field in found.fields if field.required] or None,
        properties=properties,
    )


def _of_union(found: types.UnionType, *, with_defaults: bool) -> Schema:
    kinds = [kind for kind in found.types if not isinstance(kind, types.NoneType)]
    if len(kinds) == 1:
        return _of(kinds[0], with_defaults=with_defaults)
    bounds = [_of(kind, with_defaults=False) for kind in kinds]
    if {bound.pop("type", None) for bound in bounds} != {"integer", "string"}:
        raise TypeError(f"{found} cannot be written as a structural schema")
    return {**_INT_OR_STRING, **{key: value for bound in bounds for key, value in bound.items()}}


def _of_scalar(found: types.Type) -> Schema:
    match found:
        case types.BoolType():
            return {"type": "boolean"}
        case types.IntType():
            return _present(type="integer", minimum=found.ge, maximum=found.le)
        case types.StrType():
            return _present(type="string", minLength=found.min_length, maxLength=found.max_length)
        case types.DateTimeType():
            return {"type": "string", "format": "date-time"}
        case types.EnumType():
            return {"type": "string", "enum": [member.value for member in found.cls]}
        case types.LiteralType():
            return {"type": "string", "enum": list(found.values)}
        case _:
            raise TypeError(f"{found} cannot be written as a structural schema")


def _default_of(field: types.Field) -> str | int | bool | Schema | None:
    """Return the default to write, or None; empty text and containers are absence."""
    default = field.default
    if isinstance(default, Enum):
        return str(default.value)
    if isinstance(default, str | int | bool):
        return default if default != "" else None
    if isinstance(default, msgspec.Struct):
        # In full: the API server evaluates CEL rules on a default before it defaults inside it.
        inner = ((f.encode_name, _default_of(f)) for f in _struct(type(default)).fields)
        return {name: value for name, value in inner if value is not None}
    return None


def _struct(cls: type[msgspec.Struct]) -> types.StructType:
    found = types.type_info(cls)
    if not isinstance(found, types.StructType):
        raise TypeError(f"{cls} is not a struct")
    return found


def _present(**members: Any) -> Schema:  # noqa: ANN401 - any member of a schema
    return {name: value for name, value in members.items() if value is not None}
