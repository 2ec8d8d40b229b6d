"""Pods of the tests' own, of the operator's image: it has a Python and nothing to spoil."""

from typing import Any

from proxy_operator import __version__

IMAGE = f"localhost/proxy-operator:{__version__}"
PYTHON = "/usr/bin/python3"
IDLE = "import signal; signal.sigwait([signal.SIGTERM])"


def a_pod(namespace: str, name: str, **container: Any) -> dict[str, Any]:
    """Return a Pod with one container, which passes the restricted profile."""
    volumes = container.pop("volumes", [])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 2,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": volumes,
            "containers": [
                {
                    "name": name,
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    **container,
                }
            ],
        },
    }


def running(program: str) -> list[str]:
    """Return the command that runs the source of a program."""
    return [PYTHON, "-c", program]
