"""The access of a Pod: its service account's token and authority, as the kubelet mounts them.

https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
"""

from collections.abc import Mapping
from pathlib import Path

from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.credentials import ClusterCredentials
from proxy_operator.adapters.kube.material import Material
from proxy_operator.adapters.kube.proofs import TokenFile, read_token
from proxy_operator.adapters.kube.tls import TlsContexts, Trust
from proxy_operator.runtime.clock import Clock

_HOST = "KUBERNETES_SERVICE_HOST"
_PORT = "KUBERNETES_SERVICE_PORT"
_SOURCE = "the service account of this Pod"


def is_in_cluster(environ: Mapping[str, str]) -> bool:
    """Tell whether the environment is that of a Pod."""
    return bool(environ.get(_HOST) and environ.get(_PORT))


def in_cluster_access(directory: Path, environ: Mapping[str, str], clock: Clock) -> ClusterAccess:
    """Return the access of the service account mounted at a directory.

    ClusterConfigError when the environment or the mount is not as a kubelet makes it.
    """
    server = _server(environ)
    token = directory / "token"
    try:
        first = read_token(token)
    except ValueError as err:
        raise ClusterConfigError(
            f"{_SOURCE}: {err}; does the Pod set automountServiceAccountToken: false?"
        ) from err
    authority = Material(f"{_SOURCE}: {directory / 'ca.crt'}", directory / "ca.crt")
    contexts = TlsContexts(Trust(authority), None, None, clock)
    contexts.current()
    return ClusterAccess(
        server=server,
        tls_server_name=None,
        credentials=ClusterCredentials(TokenFile(token, first, clock), contexts),
        namespace=_namespace(directory / "namespace"),
        proxy_url=None,
        source=_SOURCE,
    )


def _server(environ: Mapping[str, str]) -> str:
    host, port = environ.get(_HOST, ""), environ.get(_PORT, "")
    if not host or not port.isascii() or not port.isdigit():
        raise ClusterConfigError(f"{_SOURCE}: {_HOST} and {_PORT} must be a host and a port")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _namespace(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
