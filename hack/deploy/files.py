"""The files below deploy/, as text: documents as YAML, with words above the lines to edit."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml
from hack.deploy import rbac, workload
from hack.deploy.names import CRAWLER_LABEL, TOKEN_SECRET, WATCHED, Document

from proxy_operator.adapters.admission import crd

_HEAD: Final = "# Generated from the sources in hack/deploy by `make generate`.\n"
_IMAGE: Final = (
    "Where your nodes find the image: push it to your registry, or load it on every node."
)
_HEALTH_URL: Final = (
    "What is fetched through every proxy whose healthCheck names no url. Put a page of your own"
    " that answers 2xx; squid Pods reach none inside the cluster."
)
_TOKEN: Final = f"The Pod waits until the Secret {TOKEN_SECRET} is there (docs/operations.md)."
_WATCHED: Final = f"The namespace of your Proxies instead of {WATCHED}, here and in the Role."
_CLUSTER_ID: Final = "Marks instances as this operator's: unique, and never changed later."
_POLICY: Final = (
    "Counts only where the cluster's network plugin enforces NetworkPolicy; on others this object"
    " is accepted and does nothing."
)
_CRAWLERS: Final = "Put this label on the namespaces of your crawlers."
_MONITORING: Final = "The namespace of your monitoring system."
_KUBELET: Final = (
    "The kubelet, whose address no selector can name. It is told ok, or what is missing."
)
_WIDTH: Final = 96


def install() -> str:
    """Return deploy/install.yaml: everything, in the order in which it must come to be."""
    return _joined(
        namespace(), crd.render(), rights(), user_roles(), services(), network_policy(), operator()
    )


def namespaced_install() -> str:
    """Return deploy/namespaced/install.yaml: the same for the Proxies of one namespace."""
    return _joined(
        namespace(),
        crd.render(),
        namespaced_rights(),
        user_roles(),
        services(),
        network_policy(),
        namespaced_operator(),
    )


def namespace() -> str:
    """Return deploy/namespace.yaml."""
    return _file([workload.namespace()])


def rights() -> str:
    """Return deploy/rbac.yaml."""
    return _file(rbac.operator_rights())


def namespaced_rights() -> str:
    """Return deploy/namespaced/rbac.yaml."""
    return _file(rbac.namespaced_rights())


def user_roles() -> str:
    """Return deploy/user-roles.yaml."""
    return _file(rbac.user_roles())


def services() -> str:
    """Return deploy/services.yaml."""
    return _file(workload.services())


def network_policy() -> str:
    """Return deploy/network-policy.yaml."""
    said = {
        "podSelector:": _POLICY,
        f"{CRAWLER_LABEL}:": _CRAWLERS,
        "kubernetes.io/metadata.name:": _MONITORING,
        "- ports:": _KUBELET,
    }
    return _file([workload.network_policy()], said)


def operator() -> str:
    """Return deploy/operator.yaml."""
    return _file([workload.deployment()], _EDITED)


def namespaced_operator() -> str:
    """Return deploy/namespaced/operator.yaml."""
    said = {**_EDITED, "- --watch-namespace": _WATCHED, "- --cluster-id": _CLUSTER_ID}
    return _file([workload.deployment(workload.NAMESPACED_ARGUMENTS)], said)


_EDITED: Final = {
    "image:": _IMAGE,
    "- --health-url": _HEALTH_URL,
    "secretName:": _TOKEN,
}


def _joined(*files: str) -> str:
    return "---\n".join(files)


def _file(documents: Iterable[Document], said: Mapping[str, str] | None = None) -> str:
    body = "---\n".join(_yaml(document) for document in documents)
    for start, words in (said or {}).items():
        body = _with_comment(body, start, words)
    return _HEAD + body


def _yaml(document: Document) -> str:
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
    return text


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out in full, and lists indented as people write them."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401, ARG002 - PyYAML's signature
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, indentless=False)


def _with_comment(text: str, start: str, words: str) -> str:
    """Put words above the one line that starts so; ValueError when there is not just one."""
    lines = text.splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if line.lstrip().startswith(start)]
    if len(places) != 1:
        raise ValueError(f"{len(places)} lines start with {start!r}")
    line = lines[places[0]]
    indent = line[: len(line) - len(line.lstrip())]
    lines.insert(places[0], "".join(f"{indent}# {row}\n" for row in _wrapped(words, len(indent))))
    return "".join(lines)


def _wrapped(words: str, indent: int) -> list[str]:
    return textwrap.wrap(words, _WIDTH - indent - 2)
