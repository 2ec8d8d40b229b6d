"""A cluster of a kubeconfig: where the server is, and how it is recognised.

The rule: what cannot be done as written is refused; nothing is made less secure silently.
"""

from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

from proxy_operator.adapters.kube.entry import Entry
from proxy_operator.adapters.kube.kubeconfig_file import Cluster
from proxy_operator.adapters.kube.tls import Trust

_PLUGIN_EXTENSION: Final = "client.authentication.k8s.io/exec"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """A cluster entry, checked."""

    server: str
    tls_server_name: str | None
    trust: Trust | None
    """None for plain HTTP."""
    proxy_url: str | None = field(repr=False)
    plugin_config: Any = field(default=None, repr=False)
    """What the cluster has to say to credential plugins."""


def endpoint_of(entry: Entry[Cluster]) -> Endpoint:
    """Check a cluster entry. ClusterConfigError names file, cluster and field."""
    cluster = entry.value
    server = _server(entry)
    return Endpoint(
        server=server,
        tls_server_name=cluster.tls_server_name or None,
        trust=_trust(entry) if server.startswith("https:") else None,
        proxy_url=_proxy_url(entry),
        plugin_config=next(
            (e.extension for e in cluster.extensions or () if e.name == _PLUGIN_EXTENSION), None
        ),
    )


def _server(entry: Entry[Cluster]) -> str:
    if not entry.value.server:
        raise entry.fault("server", "must be the URL of the API server")
    parts = _url_of(entry.value.server)
    if parts is None:
        raise entry.fault("server", "must be a URL such as https://192.0.2.1:6443")
    if "@" in parts.netloc:
        raise entry.fault("server", "must hold no user name; put it under users")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _trust(entry: Entry[Cluster]) -> Trust:
    cluster = entry.value
    authority = entry.material(
        "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    if cluster.insecure_skip_tls_verify and authority is not None:
        raise entry.fault(
            "insecure-skip-tls-verify", "must not be true together with a certificate-authority"
        )
    return Trust(authority, insecure=bool(cluster.insecure_skip_tls_verify))


def _proxy_url(entry: Entry[Cluster]) -> str | None:
    url = (entry.value.proxy_url or "").strip()
    if not url:
        return None
    if _url_of(url) is None:
        raise entry.fault("proxy-url", "must be the http:// or https:// URL of an HTTP proxy")
    return url


def _url_of(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text.strip())
        is_port_usable = parts.port is None or parts.port > 0
    except ValueError:
        return None
    is_usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and is_port_usable
    return parts if is_usable else None
