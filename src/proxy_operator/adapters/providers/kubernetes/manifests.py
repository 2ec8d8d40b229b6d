"""What a squid Pod is made of, as pure functions of the request and the operator's settings.

A rule a visitor must keep: the Pod passes the `restricted` Pod security standard, and neither it
nor its ConfigMap holds anything secret.
"""

import base64
import hashlib
import re
from datetime import timedelta
from typing import Any, Final

import msgspec

from proxy_operator.adapters.kube.resources import Document
from proxy_operator.adapters.providers.squid.config import SquidSettings, squid_conf
from proxy_operator.adapters.providers.squid.users import check_credentials
from proxy_operator.domain.meta import API_VERSION
from proxy_operator.domain.names import CLUSTER_LABEL, UID_LABEL
from proxy_operator.domain.proxy import KIND, KubernetesBlock, Scheme
from proxy_operator.provisioning.contract import CreateRequest
from proxy_operator.provisioning.errors import PermanentProviderError
from proxy_operator.provisioning.targets import AllowedTarget

DEFAULT_PORT: Final = 3128
CONTAINER: Final = "squid"
MADE_BY_US: Final = {"app.kubernetes.io/managed-by": "proxy-operator"}
"""On every Pod of every operator of this kind."""
GRACE: Final = timedelta(seconds=15)
"""From SIGTERM to SIGKILL."""
DRAIN: Final = timedelta(seconds=5)
"""What is left to open connections. Squid always waits so long, even without any, and a Pod that
is replaced is down for as long."""
_PROXY_USER: Final = 13
"""User and group `proxy` of Debian and Ubuntu."""
_CONF_DIR: Final = "/etc/proxy-operator"
_USERS_DIR: Final = "/etc/proxy-operator-users"
_CONF_KEY: Final = "squid.conf"
_USERS_KEY: Final = "users"
_UNPRIVILEGED_PORT: Final = 1024
_RESOURCES: Final = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}
_SCRATCH: Final = {"run": "/run", "spool": "/var/spool/squid", "log": "/var/log/squid"}
"""What images may write to; our configuration does not."""


class PodSettings(msgspec.Struct, kw_only=True, frozen=True):
    """What an operator's flags say of all squid Pods."""

    image: str
    allowed_targets: tuple[AllowedTarget, ...] = ()


def check(request: CreateRequest) -> None:
    """Raise PermanentProviderError for what no attempt could change."""
    if request.spec.scheme is Scheme.HTTPS:
        raise PermanentProviderError(
            "spec.scheme: a squid Pod speaks http only; remove scheme, or set it to http"
        )
    if request.user_data is not None:
        raise PermanentProviderError(
            "spec.cloudInit: a squid Pod has no first boot; remove cloudInit"
        )
    if request.credentials is not None:
        try:
            check_credentials(request.credentials)
        except ValueError as err:
            raise PermanentProviderError(f"spec.credentialsSecretRef: {err}") from err


def config_map(request: CreateRequest, settings: PodSettings) -> Document:
    """Return the ConfigMap with squid's configuration, named after its content.

    It belongs to the Proxy, not to the Pod, because it must exist first; and to one Proxy only,
    so that no other loses it.
    """
    text = squid_conf(
        SquidSettings(
            port=_port(request),
            users_file=f"{_USERS_DIR}/{_USERS_KEY}" if request.credentials else None,
            allowed_targets=settings.allowed_targets,
            shutdown_lifetime=DRAIN,
        )
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": f"{request.name}-{_digest(text)}",
            "namespace": request.namespace,
            # Not the spec hash: the content is the identity here.
            "labels": {
                **_app_labels(request),
                UID_LABEL: request.labels[UID_LABEL],
                CLUSTER_LABEL: request.labels[CLUSTER_LABEL],
            },
            "ownerReferences": [_owned_by_proxy(request)],
        },
        "immutable": True,
        "data": {_CONF_KEY: text},
    }


def users_secret(pod: Document, name: str, users: str) -> Document:
    """Return the Secret with the users file, which goes with its Pod."""
    meta = pod["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": dict(meta["labels"]),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
            ],
        },
        "immutable": True,
        "type": "Opaque",
        "data": {_USERS_KEY: base64.b64encode(users.encode()).decode()},
    }


def pod(request: CreateRequest, settings: PodSettings) -> Document:
    """Return the Pod. It waits for its Secret, which can only be made once the Pod has a UID."""
    block = request.spec.kubernetes or KubernetesBlock()
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "labels": {**_app_labels(request), **request.labels},
            "ownerReferences": [_owned_by_proxy(request)],
        },
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": round(GRACE.total_seconds()),
            "nodeSelector": dict(block.node_selector),
            "tolerations": msgspec.to_builtins(list(block.tolerations)),
            "securityContext": _pod_security(request),
            "containers": [_container(request, block, settings)],
            "volumes": _volumes(request, settings),
        },
    }


def secret_of(pod: Document) -> str | None:
    """Return the name of the Secret that a Pod of ours waits for."""
    for volume in pod["spec"].get("volumes", ()):
        if "secret" in volume:
            name: str = volume["secret"]["secretName"]
            return name
    return None


def config_map_of(pod: Document) -> str | None:
    """Return the name of the ConfigMap that a Pod of ours reads."""
    for volume in pod["spec"].get("volumes", ()):
        if "configMap" in volume:
            name: str = volume["configMap"]["name"]
            return name
    return None


def port_of(pod: Document) -> int | None:
    """Return where a Pod of ours listens."""
    for container in pod["spec"].get("containers", ()):
        for port in container.get("ports", ()):
            number: int = port["containerPort"]
            return number
    return None


def _port(request: CreateRequest) -> int:
    return request.spec.port or DEFAULT_PORT


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _app_labels(request: CreateRequest) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "squid",
        "app.kubernetes.io/component": "proxy",
        **MADE_BY_US,
        "app.kubernetes.io/instance": request.name,
    }


def _owned_by_proxy(request: CreateRequest) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": request.proxy_name,
        "uid": request.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _pod_security(request: CreateRequest) -> dict[str, Any]:
    context: dict[str, Any] = {
        "runAsNonRoot": True,
        "runAsUser": _PROXY_USER,
        "runAsGroup": _PROXY_USER,
        "fsGroup": _PROXY_USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if _port(request) < _UNPRIVILEGED_PORT:
        # One of the sysctls that the restricted standard allows.
        name = "net.ipv4.ip_unprivileged_port_start"
        context["sysctls"] = [{"name": name, "value": "0"}]
    return context


def _container(
    request: CreateRequest, block: KubernetesBlock, settings: PodSettings
) -> dict[str, Any]:
    resources = msgspec.to_builtins(block.resources) if block.resources else None
    mounts = [{"name": "config", "mountPath": _CONF_DIR, "readOnly": True}]
    if request.credentials is not None:
        mounts.append({"name": "users", "mountPath": _USERS_DIR, "readOnly": True})
    mounts += [{"name": name, "mountPath": path} for name, path in _SCRATCH.items()]
    return {
        "name": CONTAINER,
        "image": block.image or settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/sbin/squid", "-N", "-d", "1", "-f", f"{_CONF_DIR}/{_CONF_KEY}"],
        "ports": [{"name": "proxy", "containerPort": _port(request), "protocol": "TCP"}],
        "resources": _RESOURCES if resources is None else resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": {**_probe(period=1, failures=60), "initialDelaySeconds": 1},
        "readinessProbe": _probe(period=10, failures=3),
        "livenessProbe": _probe(period=20, failures=3),
        "volumeMounts": mounts,
    }


def _probe(*, period: int, failures: int) -> dict[str, Any]:
    return {
        "tcpSocket": {"port": "proxy"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _volumes(request: CreateRequest, settings: PodSettings) -> list[dict[str, Any]]:
    name = config_map(request, settings)["metadata"]["name"]
    volumes: list[dict[str, Any]] = [{"name": "config", "configMap": {"name": name}}]
    if request.credentials is not None:
        # A name of its own for every create: what an earlier Pod of this name left behind is
        # removed later than that Pod.
        secret = f"{request.name}-{_digest(request.request_id)}"
        volumes.append({"name": "users", "secret": {"secretName": secret, "defaultMode": 0o440}})
    volumes += [{"name": name, "emptyDir": {"sizeLimit": "16Mi"}} for name in _SCRATCH]
    return volumes


_ID: Final = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?)/(proxy-[a-z2-7]{16})")


def provider_id_of(namespace: str, name: str) -> str:
    """Return the id of the instance that is the Pod of that name."""
    return f"{namespace}/{name}"


def parse_provider_id(provider_id: str) -> tuple[str, str] | None:
    """Return namespace and name of the Pod, or None when it is no id of ours."""
    found = _ID.fullmatch(provider_id)
    return (found[1], found[3]) if found else None
