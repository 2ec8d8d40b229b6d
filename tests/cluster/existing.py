"""A cluster that somebody else runs: that of KUBECONFIG.

Tests make and delete objects in it, the CRD included; its nodes must have the images already.
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.cluster.api import Api
from tests.cluster.programs import ClusterError


class ExistingCluster:
    """What the tests may ask of any cluster with nodes."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def start(self) -> None:
        """Check that the cluster answers and that the test machine can speak to it."""
        if not self.kubeconfig.is_file():
            raise ClusterError(f"KUBECONFIG={self.kubeconfig} is not a file")
        if not shutil.which("kubectl"):
            raise ClusterError("tests against the cluster of KUBECONFIG need kubectl on PATH")
        self.api = Api(self.kubeconfig)
        if not self.api.is_ready():
            raise ClusterError(f"the cluster of KUBECONFIG does not answer at {self.api.url}")

    def stop(self) -> None:
        """Leave the cluster running."""

    def import_image(self, archive: Path) -> None:
        """Take the word of CLUSTER_HAS_IMAGES for it: no API gives a node an image."""
        if not os.environ.get("CLUSTER_HAS_IMAGES"):
            raise ClusterError(
                f"load {archive} on the nodes of the cluster of KUBECONFIG, then set "
                "CLUSTER_HAS_IMAGES=1"
            )

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl with the kubeconfig and return what it prints, or CalledProcessError."""
        command = ["kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True)
        return done.stdout
