"""What a structural schema must be, and what people see of the resource.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
import yaml

from proxy_operator.adapters.admission import reference
from proxy_operator.adapters.admission.cel import Cel
from proxy_operator.adapters.admission.crd import document, proxy_schema, render
from proxy_operator.adapters.admission.schema import schema_of

ROOT = Path(__file__).parents[4]
SPEC = proxy_schema()["properties"]["spec"]
STATUS = proxy_schema()["properties"]["status"]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, node in schema.get("properties", {}).items():
        yield from nodes(node, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from nodes(schema[name], f"{path}[]")


NODES = dict(nodes(proxy_schema()))


def test_the_yaml_is_the_document():
    assert yaml.safe_load(render()) == document()


@pytest.mark.parametrize(
    ("file", "text"), [("deploy/crd.yaml", render()), ("docs/crd.md", reference.render())]
)
def test_the_committed_file_is_fresh(file, text):
    assert (ROOT / file).read_text() == text, "run `make generate`"


def test_the_reference_names_every_field_and_rule():
    page = reference.render()
    for path, node in NODES.items():
        if path.startswith((".spec.", ".status.")) and not path.endswith("[]"):
            assert f"| `{path.split('.', 2)[2]}` |" in page
        for rule in node.get("x-kubernetes-validations", ()):
            assert rule["message"].lower() in page.lower()


def test_the_yaml_has_no_anchors_and_ends_its_last_line():
    assert not re.search(r"[&*]id\d", render())
    assert render().endswith("\n")


def test_names():
    found = document()
    assert found["metadata"]["name"] == "proxies.crawl.example.com"
    assert found["spec"]["names"] == {
        "kind": "Proxy",
        "listKind": "ProxyList",
        "plural": "proxies",
        "singular": "proxy",
        "shortNames": ["crawlproxy"],
        "categories": ["crawl"],
    }
    (version,) = found["spec"]["versions"]
    assert (version["name"], version["subresources"]) == ("v1alpha1", {"status": {}})


def test_columns():
    (version,) = document()["spec"]["versions"]
    columns = version["additionalPrinterColumns"]
    assert [c["name"] for c in columns if not c.get("priority")] == [
        *("Phase", "Provider", "IP", "Latency", "Age"),
    ]
    assert [c["name"] for c in columns if c.get("priority")] == ["ProviderID", "Reason"]


def test_columns_show_fields_that_exist():
    (version,) = document()["spec"]["versions"]
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"].partition("[")[0]
        assert path in NODES or path == ".metadata.creationTimestamp"


@pytest.mark.parametrize("path", NODES)
def test_every_node_is_structural(path):
    node = NODES[path]
    assert not {"$ref", "nullable", "oneOf", "allOf", "not", "pattern"} & node.keys()
    if "anyOf" in node:
        assert node["x-kubernetes-int-or-string"] is True
    else:
        assert node["type"] in {"object", "array", "string", "integer", "boolean"}
    if node.get("type") == "integer":
        assert node["format"] in {"int32", "int64"}
    if node.get("type") == "array":
        assert node["x-kubernetes-list-type"] in {"atomic", "map"}


@pytest.mark.parametrize("path", [p for p in NODES if p.startswith((".spec.", ".status."))])
def test_every_field_is_described(path):
    if not path.endswith("[]"):
        assert NODES[path]["description"].endswith(".")


@pytest.mark.parametrize("path", [p for p in NODES if p.startswith(".spec")])
def test_whatever_rules_read_is_bounded(path):
    """The API server budgets a rule by the largest value it could meet."""
    node = NODES[path]
    if node.get("type") == "string" or "anyOf" in node:
        assert "maxLength" in node or "enum" in node
    if node.get("type") == "array":
        assert "maxItems" in node
    if "additionalProperties" in node:
        assert "maxProperties" in node


def test_defaults():
    assert {p: n["default"] for p, n in NODES.items() if "default" in n} == {
        ".spec.mode": "Managed",
        ".spec.scheme": "http",
        ".spec.cloudInit.secretRef.key": "user-data",
        ".spec.gcp.spot": False,
        ".spec.local.engine": "proxy-py",
        ".spec.healthCheck": {
            "interval": "30s",
            "timeout": "5s",
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        ".spec.healthCheck.interval": "30s",
        ".spec.healthCheck.timeout": "5s",
        ".spec.healthCheck.successThreshold": 1,
        ".spec.healthCheck.failureThreshold": 3,
    }


def test_conditions_merge_by_type():
    conditions = STATUS["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert set(conditions["items"]["required"]) >= {"type", "status"}


@pytest.mark.parametrize(
    ("path", "rule"),
    [(p, r) for p, n in NODES.items() for r in n.get("x-kubernetes-validations", ())],
    ids=lambda part: part if isinstance(part, str) else part["message"],
)
def test_every_rule_compiles_and_points_at_a_field(path, rule):
    assert re.fullmatch(r"[a-z].*[^.]", rule["message"])
    assert path + rule.get("fieldPath", "") in NODES
    assert Cel().is_expression(rule["rule"])


def test_rules_use_core_functions_only():
    rules = [r["rule"] for n in NODES.values() for r in n.get("x-kubernetes-validations", ())]
    called = {
        name
        for rule in rules
        for name in re.findall(r"\b([a-z]+)\(", re.sub(r"r?'[^']*'", "", rule))
    }
    assert called <= {"has", "all", "size", "matches", "contains", "duration", "type", "string"}


def test_a_type_that_has_no_structural_schema_is_refused():
    class Odd(msgspec.Struct):
        value: float

    class Mixed(msgspec.Struct):
        value: Annotated[bool, msgspec.Meta(description="x")] | str

    for struct in (Odd, Mixed):
        with pytest.raises(TypeError, match="structural schema"):
            schema_of(struct, with_defaults=True)
