"""Writes discovery.json: the part of the vendor's API description that the fake is checked against.

Names, types, patterns and enums only. Needs google-api-python-client (`make test-oracle` has it):
`python -m tests.fakes.compute.excerpt`, with --check to only tell whether the file is stale.
"""

import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any, Final

METHODS: Final = {
    "instances": ("aggregatedList", "delete", "get", "insert"),
    "zoneOperations": ("get",),
}
PATH: Final = Path(__file__).with_name("discovery.json")

_FACTS: Final = ("$ref", "type", "format", "enum", "pattern", "required", "location")


def whole_document() -> dict[str, Any]:
    """Return the description that the vendor's client library carries."""
    package = resources.files("googleapiclient.discovery_cache.documents")
    document: dict[str, Any] = json.loads((package / "compute.v1.json").read_text("utf-8"))
    return document


def render(document: dict[str, Any]) -> str:
    """Return the excerpt's text; equal documents give equal bytes."""
    methods = {}
    schemas: dict[str, Any] = {}
    for resource, names in METHODS.items():
        for name in names:
            whole = document["resources"][resource]["methods"][name]
            methods[whole["id"]] = {
                "httpMethod": whole["httpMethod"],
                "path": document["servicePath"] + whole["path"],
                "parameters": {k: _facts(v) for k, v in whole["parameters"].items()},
                "request": whole.get("request", {}).get("$ref"),
                "response": whole["response"]["$ref"],
            }
            for part in ("request", "response"):
                _collect(whole.get(part, {}), document["schemas"], schemas)
    excerpt = {
        "revision": document["revision"],
        "parameters": {k: _facts(v) for k, v in document["parameters"].items()},
        "methods": methods,
        "schemas": schemas,
    }
    lines = json.dumps(excerpt, sort_keys=True, indent=1)
    return lines + "\n"


def _facts(schema: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {name: schema[name] for name in _FACTS if name in schema}
    required_in = schema.get("annotations", {}).get("required")
    if required_in:
        facts["requiredIn"] = required_in
    for name in ("items", "additionalProperties"):
        if name in schema:
            facts[name] = _facts(schema[name])
    if "properties" in schema:
        facts["properties"] = {k: _facts(v) for k, v in schema["properties"].items()}
    return facts


def _collect(part: Any, all_schemas: dict[str, Any], into: dict[str, Any]) -> None:
    """Add every schema that this part of the document leads to."""
    if isinstance(part, list):
        for one in part:
            _collect(one, all_schemas, into)
    elif isinstance(part, dict):
        name = part.get("$ref")
        if isinstance(name, str) and name not in into:
            into[name] = _facts(all_schemas[name])
            _collect(all_schemas[name], all_schemas, into)
        for one in part.values():
            _collect(one, all_schemas, into)


def main(arguments: list[str]) -> int:
    """Write or compare; 1 when the file is stale."""
    text = render(whole_document())
    if arguments == ["--check"]:
        if PATH.read_text() == text:
            return 0
        sys.stderr.write(f"{PATH} is stale: run python -m tests.fakes.compute.excerpt\n")
        return 1
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
