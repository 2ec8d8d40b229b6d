"""A context of one or several kubeconfig files, made into an access.

The rule: names, merging and the meaning of fields are kubectl's; see
https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.cluster_entry import Endpoint, endpoint_of
from proxy_operator.adapters.kube.credentials import ClusterCredentials
from proxy_operator.adapters.kube.entry import Entry
from proxy_operator.adapters.kube.exec_credential import ExecCredential
from proxy_operator.adapters.kube.kubeconfig_file import (
    Cluster,
    Context,
    Kubeconfig,
    User,
    read_kubeconfig,
)
from proxy_operator.adapters.kube.plugin_entry import plugin_of
from proxy_operator.adapters.kube.proofs import FixedProof, Proof, Proofs
from proxy_operator.adapters.kube.tls import TlsContexts
from proxy_operator.adapters.kube.user_entry import (
    check_user,
    impersonation,
    own_certificate,
    own_proofs,
)
from proxy_operator.runtime.clock import Clock


def kubeconfig_access(
    paths: Iterable[Path], context: str | None, environ: Mapping[str, str], clock: Clock
) -> ClusterAccess:
    """Read the files that exist and return the access of a context, by default the current one.

    The first file to have a name decides about it. `environ` is for credential plugins.
    ClusterConfigError names file, entry and field; no plugin is run yet.
    """
    merged = _read(paths)
    chosen = _context(merged, context)
    user = _user(merged, chosen)
    endpoint = endpoint_of(_cluster(merged, chosen))
    check_user(user)
    return ClusterAccess(
        server=endpoint.server,
        tls_server_name=endpoint.tls_server_name,
        credentials=_credentials(user, endpoint, environ, clock),
        namespace=chosen.value.namespace or None,
        proxy_url=endpoint.proxy_url,
        source=f'context "{chosen.name}" of {chosen.file}',
    )


def _credentials(
    user: Entry[User], endpoint: Endpoint, environ: Mapping[str, str], clock: Clock
) -> ClusterCredentials:
    headers = impersonation(user)
    if endpoint.trust is None:
        # As kubectl: nothing secret is sent where anybody can read it.
        return ClusterCredentials(FixedProof(Proof()), None, headers)
    contexts = TlsContexts(endpoint.trust, *own_certificate(user), clock)
    contexts.current()
    return ClusterCredentials(_proofs(user, endpoint, environ, clock), contexts, headers)


def _proofs(
    user: Entry[User], endpoint: Endpoint, environ: Mapping[str, str], clock: Clock
) -> Proofs:
    proofs = own_proofs(user, clock)
    if user.value.exec is None:
        return proofs or FixedProof(Proof())
    plugin = plugin_of(user, user.value.exec, endpoint, environ)
    # As kubectl: a token or a password that stands in the entry goes before the plugin's.
    return proofs or ExecCredential(plugin, clock)


@dataclass(frozen=True)
class _Merged:
    """All files together: the first to have a name decides about it."""

    files: tuple[Path, ...]
    current_context: str | None
    contexts: Mapping[str, Entry[Context]]
    clusters: Mapping[str, Entry[Cluster]]
    users: Mapping[str, Entry[User]]


def _read(paths: Iterable[Path]) -> _Merged:
    found: dict[Path, Kubeconfig] = {}
    missing: list[str] = []
    for path in dict.fromkeys(path.absolute() for path in paths):
        try:
            found[path] = read_kubeconfig(path)
        except FileNotFoundError:
            missing.append(str(path))
    if not found:
        raise ClusterConfigError(f"no such kubeconfig: {', '.join(missing)}")
    contexts: dict[str, Entry[Context]] = {}
    clusters: dict[str, Entry[Cluster]] = {}
    users: dict[str, Entry[User]] = {}
    for file, config in found.items():
        for c in config.contexts or ():
            contexts.setdefault(c.name, Entry(file, "context", c.name, c.context or Context()))
        for k in config.clusters or ():
            clusters.setdefault(k.name, Entry(file, "cluster", k.name, k.cluster or Cluster()))
        for u in config.users or ():
            users.setdefault(u.name, Entry(file, "user", u.name, u.user or User()))
    current = next((c.current_context for c in found.values() if c.current_context), None)
    return _Merged(tuple(found), current, contexts, clusters, users)


def _context(merged: _Merged, name: str | None) -> Entry[Context]:
    files = ", ".join(str(file) for file in merged.files)
    has = ", ".join(f'"{known}"' for known in merged.contexts) or "none"
    chosen = name or merged.current_context
    if not chosen:
        raise ClusterConfigError(
            f"{files}: current-context is not set; choose with --context (contexts: {has})"
        )
    if chosen not in merged.contexts:
        what = "" if name else "current-context names "
        raise ClusterConfigError(
            f'{files}: {what}context "{chosen}", which does not exist (contexts: {has})'
        )
    return merged.contexts[chosen]


def _cluster(merged: _Merged, context: Entry[Context]) -> Entry[Cluster]:
    name = context.value.cluster
    if not name:
        raise context.fault("cluster", "must name a cluster")
    if name not in merged.clusters:
        raise context.fault("cluster", f'there is no cluster "{name}"')
    return merged.clusters[name]


def _user(merged: _Merged, context: Entry[Context]) -> Entry[User]:
    name = context.value.user
    if not name:
        return Entry(context.file, "user", "", User())  # nobody: the server knows us as anonymous
    if name not in merged.users:
        raise context.fault("user", f'there is no user "{name}"')
    return merged.users[name]
