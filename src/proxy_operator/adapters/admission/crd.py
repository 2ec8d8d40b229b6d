"""The CustomResourceDefinition of Proxy, generated from the types and rules of the domain.

Change the types, run `make generate`, commit deploy/crd.yaml: never edit that file.
"""

import functools
from typing import Any, Final

from proxy_operator.adapters.admission.schema import Schema, schema_of
from proxy_operator.domain.fields import Rule
from proxy_operator.domain.meta import API_GROUP, API_VERSION
from proxy_operator.domain.proxy import KIND, ProxySpec, ProxyStatus
from proxy_operator.domain.rules import PROXY_RULES

PLURAL: Final = "proxies"
_REASON: Final = '.status.conditions[?(@.type=="Provisioned")].reason'


class Column(dict[str, Any]):
    """One entry of `additionalPrinterColumns`."""

    def __init__(self, name: str, kind: str, path: str, **more: Any) -> None:  # noqa: ANN401
        super().__init__(name=name, type=kind, **more, jsonPath=path)


COLUMNS: Final = (
    Column("Phase", "string", ".status.phase"),
    Column("Provider", "string", ".spec.provider"),
    Column("IP", "string", ".status.ip"),
    Column(
        "Latency",
        "integer",
        ".status.latencyMillis",
        description="Milliseconds to the first byte of the last good probe.",
    ),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("ProviderID", "string", ".status.providerID", priority=1),
    Column("Reason", "string", _REASON, priority=1),
)


@functools.cache
def proxy_schema() -> Schema:
    """Return the `openAPIV3Schema` of Proxy. Shared: do not change it."""
    spec = schema_of(ProxySpec, with_defaults=True)
    status = schema_of(ProxyStatus, with_defaults=False)
    # One row per type, merged by it when several writers apply (server-side apply).
    status["properties"]["conditions"] |= {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    root: Schema = {
        "description": "One proxy of the fleet: declared, provisioned, probed, leased.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    for rule in PROXY_RULES:
        _node(root, rule).setdefault("x-kubernetes-validations", []).append(rule.as_schema())
    return root


def _node(root: Schema, rule: Rule) -> Schema:
    node = root
    for name in rule.path.split("."):
        node = node["properties"][name]
    return node


def document() -> dict[str, Any]:
    """Return the whole CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{API_GROUP}"},
        "spec": {
            "group": API_GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": ["crawlproxy"],
                "categories": ["crawl"],
            },
            "versions": [
                {
                    "name": API_VERSION.rpartition("/")[2],
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [dict(column) for column in COLUMNS],
                    "schema": {"openAPIV3Schema": proxy_schema()},
                }
            ],
        },
    }


def render() -> str:
    """Return deploy/crd.yaml: the document as YAML, equal bytes for equal types."""
    import yaml  # noqa: PLC0415 - most commands come here for the schema alone

    class Dumper(yaml.SafeDumper):
        """Writes equal parts out in full: an anchor would surprise readers."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002
            return True

    head = "# Generated from the types in src/proxy_operator/domain by `make generate`.\n"
    body: str = yaml.dump(document(), Dumper=Dumper, sort_keys=False, width=100)
    return head + body
