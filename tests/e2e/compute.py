"""The fake Compute Engine as a process, its instances real forward proxies on 127.77.0.0/16.

What a test sees and plants goes by plain requests: nothing of the operator is asked.
"""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Final

from proxy_operator.domain.names import UID_LABEL, instance_name, owner_labels
from tests.e2e.processes import until
from tests.fakes.compute.conduct import ZONES
from tests.fakes.compute.proxies import ROOT
from tests.fakes.compute.strangers import PROJECT, a_body

ZONE: Final = ZONES[0]
_BRISK: Final = ("--boot", "0.5", "--stop", "0.5")


class ComputeProcess:
    """A cloud with one project, which begins empty."""

    def __init__(self, root: Path) -> None:
        """Start it, and return when it answers."""
        self.port = _a_free_port()
        """Where proxies listen, each on the address of its instance."""
        self._log = root / "compute.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.fakes.compute", "--port", "0"),
                    *("--proxies", "--proxy-port", str(self.port), *_BRISK),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
            )
        try:
            self._url = until(self._announced, "the fake Compute Engine listens")
        except BaseException:
            self.close()
            raise

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the options by which the operator finds it."""
        return "--gcp-project", PROJECT, "--gcp-endpoint", self._url

    def close(self) -> None:
        """End it as Ctrl-C does: it ends its proxies, and those that it cannot end die with it."""
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def instances(self) -> dict[str, dict[str, Any]]:
        """Return all that exist, in every zone, by provider id."""
        scopes = self._send("GET", "aggregated/instances?returnPartialSuccess=true")["items"]
        return {
            f"{zone}/instances/{one['name']}": one
            for zone, scope in scopes.items()
            for one in scope.get("instances", [])
        }

    def of(self, uid: str) -> list[dict[str, Any]]:
        """Return the instances with the UID label of a Proxy."""
        return [one for one in self.instances().values() if one["labels"][UID_LABEL] == uid]

    def plant(self, uid: str, cluster_id: str) -> str:
        """Make an instance as an operator with that cluster id would; return its provider id."""
        name = instance_name(uid)
        labels = owner_labels(uid=uid, cluster_id=cluster_id, spec_hash="0" * 32)
        self._send("POST", f"zones/{ZONE}/instances", a_body(ZONE, name, labels))
        provider_id = f"zones/{ZONE}/instances/{name}"
        until(lambda: provider_id in self.instances(), "the planted instance is to be seen")
        return provider_id

    def manifest(self, name: str, url: str) -> dict[str, Any]:
        """Return a Proxy to be probed against that page."""
        return {
            "apiVersion": "crawl.example.com/v1alpha1",
            "kind": "Proxy",
            "metadata": {"name": name},
            "spec": {
                "provider": "gcp",
                "port": self.port,
                "gcp": {
                    "zone": ZONE,
                    "machineType": "e2-micro",
                    "image": "projects/images/global/images/family/ubuntu",
                },
                "healthCheck": {"url": url, "interval": "1s", "timeout": "1s"},
            },
        }

    def _announced(self) -> str:
        assert self._process.poll() is None, self._log.read_text()
        found = re.search(r"--gcp-endpoint (\S+)", self._log.read_text())
        return found[1] if found else ""

    def _send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        request = urllib.request.Request(
            f"{self._url}/compute/v1/projects/{PROJECT}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


def nat_ip(instance: dict[str, Any]) -> str:
    """Return the external address of a running instance."""
    address: str = instance["networkInterfaces"][0]["accessConfigs"][0]["natIP"]
    return address


def _a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
