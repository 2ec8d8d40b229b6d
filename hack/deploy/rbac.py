"""Who may do what: the operator's own rights, and those of people on Proxies.

The rule: a row of RULES is something that the operator does. A test compares the rows with the
audit log of an API server, so a right that is not used, or not granted, fails it.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from hack.deploy.names import NAME, NAMESPACE, WATCHED, Document, metadata

from proxy_operator.domain.meta import API_GROUP

_RBAC: Final = "rbac.authorization.k8s.io"
_AGGREGATE: Final = f"{_RBAC}/aggregate-to"


class Scope(Enum):
    """Where a right holds."""

    OBJECTS = "every namespace"
    """With --watch-namespace: that namespace."""
    CLUSTER = "the cluster"
    """What a namespaced installation does without."""
    OWN = f"namespace {NAMESPACE}"


class Rule(NamedTuple):
    """One row of rights and what it is for."""

    scope: Scope
    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()

    def document(self) -> Document:
        """Return the row as a PolicyRule."""
        rule: Document = {"apiGroups": [self.group], "resources": [self.resource]}
        if self.names:
            rule["resourceNames"] = list(self.names)
        return {**rule, "verbs": list(self.verbs)}


RULES: Final = (
    Rule(
        Scope.OBJECTS,
        API_GROUP,
        "proxies",
        ("get", "list", "watch", "patch"),
        "Follow Proxies; write finalizer and annotations; read one again after a conflict.",
    ),
    Rule(Scope.OBJECTS, API_GROUP, "proxies/status", ("patch",), "Tell how a Proxy is."),
    Rule(
        Scope.OBJECTS,
        API_GROUP,
        "proxies/finalizers",
        ("update",),
        "Be asked for where OwnerReferencesPermissionEnforcement is on (OpenShift): Pods and"
        " ConfigMaps block the deletion of the Proxy that owns them.",
    ),
    Rule(
        Scope.OBJECTS,
        "",
        "secrets",
        ("list", "watch", "get", "create"),
        "Follow Secrets with the operator's labels; make the users file of a squid Pod and look"
        " whether it is still there. RBAC knows no labels: see security.md.",
    ),
    Rule(
        Scope.OBJECTS,
        "",
        "configmaps",
        ("get", "create", "patch", "delete"),
        "Keep squid's configuration. Server-side apply of a new object needs create and patch.",
    ),
    Rule(
        Scope.OBJECTS,
        "",
        "pods",
        ("get", "create", "delete"),
        "Make, look at and end squid Pods.",
    ),
    Rule(
        Scope.CLUSTER,
        "",
        "pods",
        ("list",),
        "Find Pods without a Proxy (orphan garbage collection).",
    ),
    Rule(
        Scope.OBJECTS,
        "events.k8s.io",
        "events",
        ("create", "patch"),
        "Tell what happened; count what happens again.",
    ),
    Rule(
        Scope.CLUSTER,
        "",
        "namespaces",
        ("get",),
        "Read the UID of kube-system, which marks this cluster's instances, unless --cluster-id"
        " is given.",
        ("kube-system",),
    ),
    Rule(
        Scope.OWN,
        "coordination.k8s.io",
        "leases",
        ("create",),
        "Make the leader's Lease. RBAC cannot restrict a create to a name.",
    ),
    Rule(
        Scope.OWN,
        "coordination.k8s.io",
        "leases",
        ("get", "update"),
        "Take and renew leadership.",
        (NAME,),
    ),
)


def rules_in(*scopes: Scope) -> list[Rule]:
    """Return the rows of these scopes, in order."""
    return [rule for rule in RULES if rule.scope in scopes]


def service_account() -> Document:
    """Return the operator's account. Only its own Pod mounts the token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(NAME),
        "automountServiceAccountToken": False,
    }


def operator_rights() -> list[Document]:
    """Return account, roles and bindings of an operator for every namespace."""
    return [
        service_account(),
        _role("ClusterRole", None, rules_in(Scope.OBJECTS, Scope.CLUSTER)),
        _binding("ClusterRole", None),
        *_leadership(),
    ]


def namespaced_rights() -> list[Document]:
    """Return account, roles and bindings of an operator for one namespace."""
    return [
        service_account(),
        _role("Role", WATCHED, rules_in(Scope.OBJECTS)),
        _binding("Role", WATCHED),
        *_leadership(),
    ]


def user_roles() -> list[Document]:
    """Return what the built-in roles view, edit and admin gain: Proxies, never their status."""
    return [
        _user_role("view", ("view", "edit", "admin"), ("get", "list", "watch")),
        _user_role(
            "edit",
            ("edit", "admin"),
            ("create", "update", "patch", "delete", "deletecollection"),
        ),
    ]


def rights_table() -> str:
    """Return the rows for people, as Markdown."""
    lines = ["| Where | What | May | Why |", "|---|---|---|---|"]
    for rule in RULES:
        what = f"{rule.resource}.{rule.group}" if rule.group else rule.resource
        named = f" named {', '.join(f'`{name}`' for name in rule.names)}" if rule.names else ""
        lines.append(
            f"| {rule.scope.value} | `{what}`{named} | {', '.join(rule.verbs)} | {rule.why} |"
        )
    return "\n".join(lines)


def _leadership() -> list[Document]:
    name = f"{NAME}-leader"
    return [_role("Role", NAMESPACE, rules_in(Scope.OWN), name), _binding("Role", NAMESPACE, name)]


def _role(kind: str, namespace: str | None, rules: Iterable[Rule], name: str = NAME) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": metadata(name, namespace),
        "rules": [rule.document() for rule in rules],
    }


def _binding(kind: str, namespace: str | None, name: str = NAME) -> Document:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata(name, namespace),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _user_role(name: str, into: Iterable[str], verbs: Iterable[str]) -> Document:
    labels = {f"{_AGGREGATE}-{role}": "true" for role in into}
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata(f"{NAME}-{name}", None, **labels),
        "rules": [{"apiGroups": [API_GROUP], "resources": ["proxies"], "verbs": list(verbs)}],
    }
