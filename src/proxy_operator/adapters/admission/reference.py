"""docs/crd.md: what a Proxy manifest may say, from the same schema that judges it."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

from proxy_operator.adapters.admission.crd import COLUMNS, proxy_schema
from proxy_operator.adapters.admission.schema import Schema
from proxy_operator.domain.condition import HealthyReason, ProvisionedReason
from proxy_operator.domain.meta import API_VERSION
from proxy_operator.domain.names import CLOUD_INIT_LABEL, CREDENTIALS_LABEL
from proxy_operator.domain.phase import RULES as PHASE_RULES
from proxy_operator.domain.proxy import ProviderName

SERVED: Final[dict[str, str]] = {
    ProviderName.GCP: "in both homes, with `--gcp-project`",
    ProviderName.KUBERNETES: "in a cluster only",
    ProviderName.LOCAL: "by the standalone operator only",
}
"""Where there is which provider."""

_HEAD: Final = f"""\
<!-- Generated from the types in src/proxy_operator/domain by `make generate`. -->
# The Proxy resource

`{API_VERSION}`, namespaced; `proxies`, `proxy`, `crawlproxy`, and in the category `crawl`.
The standalone operator and a cluster refuse the same manifests, because both evaluate the same
document: [deploy/crd.yaml](../deploy/crd.yaml), also printed by `proxy-operator crd`.
Unknown fields are refused. A field that is removed from a manifest is removed from the object.

```yaml
apiVersion: {API_VERSION}
kind: Proxy
metadata:
  name: eu-1
spec:
  provider: local
  credentialsSecretRef:
    name: eu-credentials
  attributes:
    region: eu
```

The Secret named by `credentialsSecretRef` needs the label `{CREDENTIALS_LABEL}: "true"`, the one
named by `cloudInit.secretRef` the label `{CLOUD_INIT_LABEL}: "true"`; both live in the namespace of
the Proxy.
"""


def render() -> str:
    """Return the page."""
    spec = proxy_schema()["properties"]["spec"]
    status = proxy_schema()["properties"]["status"]
    parts = (
        _HEAD,
        "## spec\n",
        *_table(("Field", "Type", "Default", "Meaning"), _fields(spec, "")),
        "\n### Rules over several fields\n",
        *(f"- {rule}" for rule in _rules(spec, "spec")),
        "\n## status\n",
        "Written by the operator only.\n",
        *_table(("Field", "Type", "Meaning"), ((a, b, d) for a, b, _, d in _fields(status, ""))),
        "\n### Phase\n",
        "Computed from the conditions; the first line that applies wins.\n",
        *_table(("When", "Phase"), ((when, f"`{phase}`") for when, _, phase in PHASE_RULES)),
        "\n### Conditions\n",
        *_table(
            ("Condition", "Reasons"),
            (
                ("`Provisioned`", _words(ProvisionedReason)),
                ("`Healthy`", _words(HealthyReason)),
            ),
        ),
        "\n## Columns of `get`\n",
        *_table(
            ("Column", "From", "Shown"),
            (
                (
                    c["name"],
                    f"`{c['jsonPath']}`",
                    "with `-o wide`" if c.get("priority") else "always",
                )
                for c in COLUMNS
            ),
        ),
    )
    return "\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]] | tuple[Any, ...]) -> list[str]:
    lines = [head, ("---",) * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield field, type, default and meaning of everything below a node."""
    required = schema.get("required", ())
    for name, node in schema["properties"].items():
        field = f"{path}{name}"
        default = "required" if name in required else _default(node)
        yield f"`{field}`", _type(node), default, f"{_meaning(node)}{_served(field)}"
        inner = node.get("items", node)
        if "properties" in inner:
            yield from _fields(inner, f"{field}[]." if "items" in node else f"{field}.")


def _served(field: str) -> str:
    """Say where a provider is served; its block goes with it."""
    if field in SERVED:
        return f" Served {SERVED[field]}."
    said = [f" `{provider}` is served {where}." for provider, where in SERVED.items()]
    return "".join(said) if field == "provider" else ""


def _default(node: Schema) -> str:
    default = node.get("default")
    if default is None or isinstance(default, dict):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(node: Schema) -> str:
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "x-kubernetes-int-or-string" in node:
        return "integer or string"
    if node["type"] == "array":
        most = f", at most {node['maxItems']}" if "maxItems" in node else ""
        return f"list of {_type(node['items'])}{most}"
    if "additionalProperties" in node:
        return f"map to {_type(node['additionalProperties'])}, at most {node['maxProperties']}"
    if node["type"] == "integer":
        return _range(node)
    return "time" if node.get("format") == "date-time" else str(node["type"])


def _range(node: Schema) -> str:
    least, most = node.get("minimum"), node.get("maximum")
    if least is None:
        return "integer"
    return f"integer, {least} to {most}" if most is not None else f"integer, {least} or more"


def _meaning(node: Schema) -> str:
    described = str(node.get("description", ""))
    inner = node.get("additionalProperties") or node.get("items") or {}
    rules = [*_own_rules(node), *(f"values {rule}" for rule in _own_rules(inner))]
    said = "; ".join(rules)
    return f"{described} {said[:1].upper()}{said[1:]}." if said else described


def _own_rules(node: Schema) -> list[str]:
    """Return the rules of a node about itself, in words."""
    found = node.get("x-kubernetes-validations", ())
    return [rule["message"] for rule in found if "fieldPath" not in rule]


def _rules(schema: Schema, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if "fieldPath" in rule:
            yield f"`{path}{rule['fieldPath']}`: {rule['message']}."
    for name, node in schema.get("properties", {}).items():
        yield from _rules(node, f"{path}.{name}")


def _words(reasons: type[StrEnum]) -> str:
    return ", ".join(f"`{reason}`" for reason in reasons)
