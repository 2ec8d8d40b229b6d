"""The vendor's description of the API: which call a request is, and whether it may look like that.

Unknown is wrong, in both directions: a misspelt field must fail a test, not be ignored.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from tests.fakes.compute.messages import RefusedError, Request

EXCERPT: Final = Path(__file__).with_name("discovery.json")

# Taken by the real API; some revisions of its description leave it out.
_UNDESCRIBED: Final = {"compute.instances.aggregatedList": {"returnPartialSuccess": "boolean"}}

# The real API does all that it describes; a client must not get something else here than there.
_DONE: Final = {
    *("alt", "filter", "maxResults", "pageToken", "prettyPrint", "requestId"),
    "returnPartialSuccess",
}

_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True)
class Method:
    """One call of the API."""

    id: str
    http_method: str
    path: re.Pattern[str]
    query: Mapping[str, Mapping[str, Any]]
    request: str | None
    response: str


class Description:
    """The methods and schemas of one excerpt."""

    def __init__(self, excerpt: Mapping[str, Any]) -> None:
        self._schemas: Mapping[str, Any] = excerpt["schemas"]
        common = excerpt["parameters"]
        self._methods = [_method(name, one, common) for name, one in excerpt["methods"].items()]

    def find(self, request: Request) -> tuple[Method, dict[str, str]]:
        """Return the method and the parts of the path. RefusedError when there is none."""
        for method in self._methods:
            match = method.path.fullmatch(request.path)
            if match and method.http_method == request.method:
                return method, match.groupdict()
        message = f"no such call: {request.method} {request.path}"
        raise RefusedError(404, "notFound", message)

    def check_request(self, method: Method, request: Request) -> Any:
        """Return the decoded body. RefusedError names the first thing that is wrong."""
        for name, value in request.query.items():
            schema = method.query.get(name)
            if schema is None:
                raise _invalid(f"unknown query parameter {name}")
            if problem := _query_problem(schema, value):
                raise _invalid(f"query parameter {name}: {problem}")
            if name not in _DONE:
                raise _invalid(f"query parameter {name}: the fake does not do this")
        if method.request is None:
            if request.body:
                raise _invalid("this call takes no body")
            return None
        try:
            body = json.loads(request.body)
        except ValueError as err:
            raise RefusedError(400, "parseError", "the body is not JSON") from err
        problem = self._problem({"$ref": method.request}, body, "", method.id)
        if problem:
            raise _invalid(f"body: {problem}")
        return body

    def check_answer(self, method: Method, document: Any) -> None:
        """AssertionError when the API would never answer that."""
        problem = self._problem({"$ref": method.response}, document, "", None)
        assert problem is None, f"{method.response}: {problem}"

    def _problem(
        self, schema: Mapping[str, Any], value: Any, at: str, required_in: str | None
    ) -> str | None:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"]]
        kind = schema.get("type")
        if kind == "object":
            return self._object_problem(schema, value, at, required_in)
        if kind == "array":
            return self._array_problem(schema, value, at, required_in)
        problem = _scalar_problem(schema, value)
        return f"{at or 'it'}: {problem}" if problem else None

    def _object_problem(
        self, schema: Mapping[str, Any], value: Any, at: str, required_in: str | None
    ) -> str | None:
        if not isinstance(value, dict):
            return f"{at or 'it'}: must be an object"
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties")
        for name, one in value.items():
            inner = properties.get(name, others)
            if inner is None:
                return f"unknown field {at}.{name}".replace(" .", " ")
            if problem := self._problem(inner, one, f"{at}.{name}".lstrip("."), required_in):
                return problem
        if required_in is not None:
            for name, inner in properties.items():
                if required_in in inner.get("requiredIn", ()) and name not in value:
                    return f"{at}.{name}".lstrip(".") + ": required"
        return None

    def _array_problem(
        self, schema: Mapping[str, Any], value: Any, at: str, required_in: str | None
    ) -> str | None:
        if not isinstance(value, list):
            return f"{at}: must be a list"
        for number, one in enumerate(value):
            if problem := self._problem(schema["items"], one, f"{at}[{number}]", required_in):
                return problem
        return None


def _method(name: str, whole: Mapping[str, Any], common: Mapping[str, Any]) -> Method:
    pattern = re.escape("/" + whole["path"]).replace(r"\{", "{").replace(r"\}", "}")
    query: dict[str, Any] = dict(common)
    for parameter, schema in whole["parameters"].items():
        if schema["location"] == "path":
            inner = schema.get("pattern", "[^/]+")
            pattern = pattern.replace(f"{{{parameter}}}", f"(?P<{parameter}>{inner})")
        else:
            query[parameter] = schema
    for parameter, kind in _UNDESCRIBED.get(name, {}).items():
        query[parameter] = {"type": kind}
    return Method(
        id=name,
        http_method=whole["httpMethod"],
        path=re.compile(pattern),
        query=query,
        request=whole["request"],
        response=whole["response"],
    )


def _invalid(message: str) -> RefusedError:
    return RefusedError(400, "invalid", message)


def _query_problem(schema: Mapping[str, Any], value: str) -> str | None:
    match schema["type"]:
        case "boolean":
            return None if value in {"true", "false"} else "must be true or false"
        case "integer":
            return None if _WHOLE_NUMBER.fullmatch(value) else "must be a whole number"
        case _:
            return _scalar_problem(schema, value)


def _scalar_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    kind: Literal["string", "boolean", "integer", "number", "any"] = schema["type"]
    match kind:
        case "string":
            return _string_problem(schema, value)
        case "boolean":
            return None if isinstance(value, bool) else "must be true or false"
        case "integer":
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return None if is_whole else "must be a whole number"
        case "number":
            return None if isinstance(value, (int, float)) else "must be a number"
        case "any":
            return None


def _string_problem(schema: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    if schema.get("format") in {"int64", "uint64"} and not _WHOLE_NUMBER.fullmatch(value):
        return "must be a string of digits"
    if "enum" in schema and value not in schema["enum"]:
        return f"must be one of {', '.join(schema['enum'])}"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return f"must match {schema['pattern']}"
    return None


@lru_cache(maxsize=1)
def description() -> Description:
    """Return the description in discovery.json, read once."""
    return Description(json.loads(EXCERPT.read_text("utf-8")))
