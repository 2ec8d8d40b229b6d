"""Names that several of the documents share, and people type."""

from typing import Any, Final, TypeAlias

from proxy_operator import __version__

Document: TypeAlias = dict[str, Any]

NAME: Final = "proxy-operator"
NAMESPACE: Final = "proxy-operator"
"""Where the operator runs. It is where the program looks for its Lease when it is no Pod, too."""
WATCHED: Final = "crawl"
"""The one namespace of Proxies in the namespaced variant; users put theirs."""
TOKEN_SECRET: Final = "discovery-token"
TOKEN_KEY: Final = "token"
CRAWLER_LABEL: Final = "crawl.example.com/crawlers"
"""On namespaces whose Pods may ask the discovery API, where NetworkPolicy is enforced."""
SELECTOR: Final = {"app.kubernetes.io/name": NAME}


def metadata(name: str, namespace: str | None = NAMESPACE, **labels: str) -> Document:
    """Return the metadata of an object; None is cluster-wide."""
    place = {} if namespace is None else {"namespace": namespace}
    return {"name": name, **place, "labels": {**SELECTOR, **labels}}


def version_label() -> dict[str, str]:
    """Return the label that says which version runs."""
    return {"app.kubernetes.io/version": __version__}
