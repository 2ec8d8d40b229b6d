"""Where an access may come from, and which source goes before which."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.in_cluster import in_cluster_access, is_in_cluster
from proxy_operator.adapters.kube.kubeconfig import kubeconfig_access
from proxy_operator.runtime.clock import Clock

_SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def discover_access(
    kubeconfig: Path | None, context: str | None, environ: Mapping[str, str], clock: Clock
) -> ClusterAccess:
    """Find the cluster as controller-runtime does, and our credentials for it.

    `kubeconfig` (--kubeconfig) goes before the files of KUBECONFIG, these before the service
    account of a Pod, this before ~/.kube/config. A `context` (--context) is one of a kubeconfig,
    so no service account is used then. Reads small files; nothing is sent or run.
    ClusterConfigError is one sentence for the user.
    """
    if kubeconfig is not None:
        return kubeconfig_access([kubeconfig], context, environ, clock)
    named = [Path(name) for name in environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    if named:
        return kubeconfig_access(named, context, environ, clock)
    home = Path(environ["HOME"], ".kube", "config") if environ.get("HOME") else None
    has_home = home is not None and home.exists()
    if context is None and is_in_cluster(environ):
        try:
            return in_cluster_access(_SERVICE_ACCOUNT, environ, clock)
        except ClusterConfigError:
            if not has_home:
                raise
    if home is None or not has_home:
        raise ClusterConfigError(
            "no Kubernetes cluster is configured: pass --kubeconfig or set KUBECONFIG "
            f"(there is no {home or '~/.kube/config'}, and this is no Pod with a service account)"
        )
    return kubeconfig_access([home], context, environ, clock)
