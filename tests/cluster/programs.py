"""Where the programs of a test cluster come from.

Never from PATH: what runs is either what a variable names or what hack/cluster/build made of the
pinned versions.
"""

import os
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "hack" / "cluster" / "build"


class ClusterError(Exception):
    """A test cluster that cannot be had; the text says what is missing and what to do."""


def for_control_plane() -> Path:
    """Return the directory with etcd and kube-apiserver."""
    for variable in ("KUBEBUILDER_ASSETS", "CLUSTER_BIN"):
        if os.environ.get(variable):
            return _checked(Path(os.environ[variable]), variable, ["etcd", "kube-apiserver"])
    return _built(["etcd", "kube-apiserver"])


def for_node() -> Path:
    """Return the directory with all programs of a cluster and, in `images`, what Pods need."""
    needed = [
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"),
        *("kubelet", "kube-proxy", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr"),
        *("cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap"),
    ]
    if os.environ.get("CLUSTER_BIN"):
        return _checked(Path(os.environ["CLUSTER_BIN"]), "CLUSTER_BIN", needed)
    return _built(needed)


def images() -> list[Path]:
    """Return the archives of the images that every node has."""
    if os.environ.get("CLUSTER_BIN"):
        programs = Path(os.environ["CLUSTER_BIN"])
        places = [programs / "images", programs.parent / "images"]
    else:
        places = [_where("images")]
    for directory in places:
        if found := sorted(directory.glob("*.tar")):
            return found
    raise ClusterError(f"no image archives in {' or '.join(map(str, places))}")


def of_this_machine(name: str, package: str) -> str:
    """Return the path of a program that Debian packages."""
    if found := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        return found
    raise ClusterError(f"a test cluster needs {name}; as root: apt-get install {package}")


def _checked(directory: Path, variable: str, names: list[str]) -> Path:
    if missing := _missing(directory, names):
        raise ClusterError(f"{variable}={directory} has no {', '.join(missing)}")
    return directory.resolve()


def _built(names: list[str]) -> Path:
    directory = _where("programs")
    if _missing(directory, names):
        raise ClusterError(
            "the test cluster's programs are not built; run hack/cluster/build, or set "
            "KUBEBUILDER_ASSETS (etcd, kube-apiserver) or CLUSTER_BIN (all of them)"
        )
    return directory


def _where(what: str) -> Path:
    said = subprocess.run([BUILD, "--where", what], check=True, capture_output=True, text=True)
    return Path(said.stdout.strip())


def _missing(directory: Path, names: list[str]) -> list[str]:
    return [name for name in names if not os.access(directory / name, os.X_OK)]
