"""The operator as a Pod, how it is reached, and the namespace it lives in."""

from collections.abc import Sequence
from typing import Any, Final

from hack.deploy.names import (
    CRAWLER_LABEL,
    NAME,
    NAMESPACE,
    SELECTOR,
    TOKEN_KEY,
    TOKEN_SECRET,
    WATCHED,
    Document,
    metadata,
    version_label,
)

from proxy_operator import __version__

IMAGE: Final = f"localhost/proxy-operator:{__version__}"
HEALTH_URL: Final = "https://example.com/"
USER: Final = 65532
DISCOVERY, METRICS, HEALTH = ("discovery", 8090), ("metrics", 8080), ("health", 8081)
_TOKEN_DIR: Final = "/etc/proxy-operator/discovery"
ARGUMENTS: Final = (
    "run",
    f"--health-url={HEALTH_URL}",
    f"--discovery-token-file={_TOKEN_DIR}/{TOKEN_KEY}",
)
NAMESPACED_ARGUMENTS: Final = (
    *ARGUMENTS,
    f"--watch-namespace={WATCHED}",
    f"--cluster-id={WATCHED}",
    "--gc-allow-namespaced",
)
GRACE_SECONDS: Final = 30
"""Passes and requests under way get 11 s each, one after the other, the Lease 5 s in between."""


def namespace() -> Document:
    """Return the operator's namespace, where nothing but restricted Pods may run."""
    levels = {
        f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata(NAMESPACE, None, **levels),
    }


def deployment(arguments: Sequence[str] = ARGUMENTS) -> Document:
    """Return the Deployment. One replica: a second one would wait for the first one's Lease."""
    labels = {**SELECTOR, **version_label()}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, **version_label()),
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": dict(SELECTOR)},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"kubectl.kubernetes.io/default-container": "operator"},
                },
                "spec": {
                    "serviceAccountName": NAME,
                    "automountServiceAccountToken": True,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": GRACE_SECONDS,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(arguments)],
                    "volumes": [
                        {
                            "name": TOKEN_SECRET,
                            "secret": {
                                "secretName": TOKEN_SECRET,
                                "items": [{"key": TOKEN_KEY, "path": TOKEN_KEY}],
                            },
                        }
                    ],
                },
            },
        },
    }


def services() -> list[Document]:
    """Return the Services: what crawlers ask, and what a monitoring system reads."""
    return [_service(NAME, *DISCOVERY), _service(f"{NAME}-metrics", *METRICS)]


def network_policy() -> Document:
    """Return who may connect to the operator. It may connect anywhere: probes do."""
    monitoring = {"kubernetes.io/metadata.name": "monitoring"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(NAME),
        "spec": {
            "podSelector": {"matchLabels": dict(SELECTOR)},
            "policyTypes": ["Ingress"],
            "ingress": [
                _from({CRAWLER_LABEL: "true"}, DISCOVERY),
                _from(monitoring, METRICS),
                {"ports": [_port(HEALTH)]},
            ],
        },
    }


def _container(arguments: Sequence[str]) -> Document:
    return {
        "name": "operator",
        "image": IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": list(arguments),
        "ports": [
            {"name": name, "containerPort": number, "protocol": "TCP"}
            for name, number in (DISCOVERY, METRICS, HEALTH)
        ],
        # 82 MB at 5,000 settled proxies (docs/benchmarks.md); leases in memory come on top.
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # It answers when its caches are filled, which waits for the API server and the CRD.
        "startupProbe": _probe("/healthz", period=2, failures=60),
        "livenessProbe": _probe("/healthz", period=10, failures=3),
        "readinessProbe": _probe("/readyz", period=5, failures=2),
        "volumeMounts": [{"name": TOKEN_SECRET, "mountPath": _TOKEN_DIR, "readOnly": True}],
    }


def _probe(path: str, *, period: int, failures: int) -> Document:
    return {
        "httpGet": {"path": path, "port": HEALTH[0]},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _service(name: str, port: str, number: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name),
        "spec": {
            "selector": dict(SELECTOR),
            "ports": [{"name": port, "port": number, "targetPort": port, "protocol": "TCP"}],
        },
    }


def _from(namespace_labels: dict[str, str], port: tuple[str, int]) -> dict[str, Any]:
    return {
        "from": [{"namespaceSelector": {"matchLabels": namespace_labels}}],
        "ports": [_port(port)],
    }


def _port(port: tuple[str, int]) -> Document:
    return {"port": port[0], "protocol": "TCP"}
