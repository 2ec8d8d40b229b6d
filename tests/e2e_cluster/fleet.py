"""Manifests that users of these tests apply."""

from typing import Any

USER = "crawler"


def credentials(namespace: str, name: str, password: str, user: str = USER) -> dict[str, Any]:
    """Return a Secret that the operator may read: its label says so."""
    labels = {"crawl.example.com/credentials": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "stringData": {"username": user, "password": password},
    }


def a_squid(namespace: str, name: str, *, secret: str = "", **spec: Any) -> dict[str, Any]:
    """Return a Proxy that is a squid Pod."""
    if secret:
        spec["credentialsSecretRef"] = {"name": secret}
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "provider": "kubernetes",
            "healthCheck": {"interval": "2s", "timeout": "2s"},
            **spec,
        },
    }
