"""The OpenAPI 3.1 document, generated from the route table and the wire types."""

import functools
from typing import Any, Final

import msgspec

from proxy_operator import __version__
from proxy_operator.adapters.web.errors import STATUS, ErrorCode
from proxy_operator.adapters.web.routes import ERROR_BODY, ROUTES, Answer, QueryParameter, Route

_REF: Final = "#/components/schemas/{name}"
_INTRODUCTION: Final = """\
Find a proxy that works now, lease it, say how it went, give it back.

Leases and cooldowns live in the memory of one operator process: a restart drops them.
"""
_ALWAYS: Final = (ErrorCode.INTERNAL,)
_WITH_TOKEN: Final = (ErrorCode.UNAUTHORIZED, ErrorCode.FORBIDDEN)


def openapi_document() -> dict[str, Any]:
    """Return the document."""
    routes = [route for route in ROUTES if route.summary]
    refs, components = _schemas(routes)
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "proxy-operator discovery API",
            "version": __version__,
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "DISCOVERY_TOKEN of the operator.",
                }
            },
        },
    }


@functools.cache
def openapi_json() -> bytes:
    """Return the document as it is served and committed."""
    return msgspec.json.format(msgspec.json.encode(openapi_document()), indent=2) + b"\n"


def render() -> str:
    """Return the document as text, for the committed copy."""
    return openapi_json().decode()


def _schemas(routes: list[Route]) -> tuple[dict[type, Any], dict[str, Any]]:
    types: list[type] = [ERROR_BODY]
    for route in routes:
        used = (route.body, *(answer.body for answer in route.answers))
        types.extend(t for t in used if t is not None and t not in types)
    refs, components = msgspec.json.schema_components(types, ref_template=_REF)
    return dict(zip(types, refs, strict=True)), components


def _operation(route: Route, refs: dict[type, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": route.operation, "summary": route.summary}
    parameters = [*_path_parameters(route), *_query_parameters(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = {"content": _json(refs[route.body])}
    operation["responses"] = {
        **{str(answer.status): _response(answer, refs) for answer in route.answers},
        **_errors(route, refs),
    }
    if route.is_public:
        operation["security"] = []
    return operation


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    return [_query_parameter(parameter) for parameter in route.parameters]


def _query_parameter(parameter: QueryParameter) -> dict[str, Any]:
    name, description, schema = parameter
    row: dict[str, Any] = {"name": name, "in": "query", "description": description}
    if not name.endswith("*"):
        return {**row, "schema": schema}
    # An exploded object is the only way to document free names: its keys are the names.
    free = {
        "type": "object",
        "propertyNames": {"pattern": "^attr\\."},
        "additionalProperties": schema,
    }
    return {**row, "name": "attributes", "style": "form", "explode": True, "schema": free}


def _response(answer: Answer, refs: dict[type, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": answer.description}
    if answer.headers:
        response["headers"] = {
            name: {"description": "Seconds until it is worth asking again.", "schema": _SECONDS}
            for name in answer.headers
        }
    if answer.body is not None:
        response["content"] = _json(refs[answer.body])
    return response


_SECONDS: Final = {"type": "integer", "minimum": 0}


def _errors(route: Route, refs: dict[type, Any]) -> dict[str, Any]:
    codes = [*route.errors, *(() if route.is_public else _WITH_TOKEN)]
    if route.needs_leader:
        codes.append(ErrorCode.NOT_LEADER)
    by_status: dict[int, list[str]] = {}
    for code in (*codes, *_ALWAYS):
        by_status.setdefault(STATUS[code], []).append(code)
    return {
        str(status): {
            "description": f"error: {' or '.join(names)}",
            "content": _json(refs[ERROR_BODY]),
        }
        for status, names in sorted(by_status.items())
    }


def _json(schema: Any) -> dict[str, Any]:  # noqa: ANN401 - a JSON schema
    return {"application/json": {"schema": schema}}
