"""A cluster of one node that runs Pods, in namespaces of its own. Needs root.

Nothing of it is shared with the machine but the kernel and the files below one state directory:
it has its own network without a way out, mounts, processes and control groups. Killing its first
process ends everything in it, Pods too.
"""

import os
import subprocess
from pathlib import Path

from tests.cluster import runtime
from tests.cluster.control_plane import Addresses, ControlPlane
from tests.cluster.network import Network
from tests.cluster.processes import Processes
from tests.cluster.programs import ClusterError, images, of_this_machine
from tests.cluster.state import NAMESPACES

NODE = "node-1"
SYSTEM_NODES = "system:nodes"


class NodeCluster:
    """A control plane with its controllers, and a node with the images of the test cluster."""

    def __init__(self, programs: Path, state: Path) -> None:
        self._programs = programs
        self.state = state
        self._holder = Processes(state / "logs")
        self.network = Network()
        self._node = Processes(state / "logs")
        self.plane = ControlPlane(programs, state)

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig

    @property
    def inside(self) -> list[str]:
        """What to put before a command to run it on the node."""
        return [str(NAMESPACES), "enter", self._name, str(self._first_pid())]

    @property
    def in_network(self) -> list[str]:
        """What to put before a command that needs the node's network only; it keeps its pid."""
        return [of_this_machine("nsenter", "util-linux"), f"--net=/proc/{self._first_pid()}/ns/net"]

    @property
    def _name(self) -> str:
        """The name of its control groups, which no other cluster has at the same time."""
        return self.state.name

    def start(self) -> None:
        """Start everything and wait for the node to be ready; ClusterError if it cannot be."""
        _check_machine()
        self._make_namespaces()
        net = self.network
        addresses = Addresses(net.node, net.services, net.first_service)
        self.plane = ControlPlane(self._programs, self.state, addresses, self.in_network)
        self._node = Processes(self.state / "logs", self.inside)
        runtime.start_containerd(self._node, self._programs, self.state, net)
        self.plane.start()
        self._start_controllers()
        self._start_node()
        for archive in images():
            self.import_image(archive)
        self._node.wait_until("ready node", self._is_node_ready, within=120)

    def stop(self) -> None:
        """End the node with all its Pods, and remove what the machine had of it."""
        # Nothing outlives the first process of a process namespace, Pods included.
        self._holder.end_all()
        for programs in (self._node, self.plane.processes):
            programs.end_all()
        self.network.remove()
        remove = subprocess.run(
            [NAMESPACES, "remove", self._name], capture_output=True, text=True, check=False
        )
        if remove.returncode:
            raise ClusterError(remove.stderr.strip())

    def import_image(self, archive: Path) -> None:
        """Give the node an image from an OCI archive."""
        done = self.ctr("images", "import", str(archive.resolve()))
        if done.returncode:
            raise ClusterError(f"the node refused {archive}: {done.stderr.strip()}")

    def ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run containerd's own tool, which sees containers and images below Kubernetes."""
        address = f"--address={runtime.socket(self.state)}"
        return self._run("ctr", address, "--namespace=k8s.io", *arguments, inside=self.inside)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as an administrator and return what it prints, or CalledProcessError."""
        done = self._run("kubectl", f"--kubeconfig={self.kubeconfig}", *arguments, stdin=stdin)
        done.check_returncode()
        return done.stdout

    def _run(
        self, name: str, *arguments: str, inside: list[str] | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        command = [*(inside or []), str(self._programs / name), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def _first_pid(self) -> int:
        """Return the process id, as seen from here, of the node's first process."""
        holder = self._holder.pid("namespaces")
        children = Path(f"/proc/{holder}/task/{holder}/children").read_text().split()
        if not children:
            raise ClusterError("the node's first process has ended")
        return int(children[0])

    def _make_namespaces(self) -> None:
        (self.state / "node").mkdir()
        self._holder.start("namespaces", NAMESPACES, "hold", self._name, self.state)
        ready = (self.state / "node/namespaces-ready").exists
        self._holder.wait_until("namespaces for a node", ready, within=15)
        self.network.make(self._first_pid(), self.inside)

    def _start_controllers(self) -> None:
        net = self.network
        manager = self._identity("controller-manager", "system:kube-controller-manager")
        pki = self.plane.certificates
        self._start(
            self.plane.processes,
            "kube-controller-manager",
            *_as(manager),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.plane.accounts_key}",
            f"--root-ca-file={pki.authority}",
            f"--cluster-signing-cert-file={pki.authority}",
            f"--cluster-signing-key-file={pki.authority_key}",
            "--allocate-node-cidrs=true",
            f"--cluster-cidr={net.pods}",
            f"--service-cluster-ip-range={net.services}",
        )
        scheduler = self._identity("scheduler", "system:kube-scheduler")
        self._start(self.plane.processes, "kube-scheduler", *_as(scheduler))

    def _start_node(self) -> None:
        pki = self.plane.certificates
        kubelet = self._identity("kubelet", f"system:node:{NODE}", SYSTEM_NODES)
        serving = pki.issue("kubelet-serving", NODE, serves=(NODE, self.network.node))
        self._start(
            self._node,
            "kubelet",
            f"--config={runtime.kubelet_config(self.state, pki.authority, serving)}",
            f"--kubeconfig={kubelet}",
            f"--hostname-override={NODE}",
            f"--node-ip={self.network.node}",
        )
        proxy = self._identity("kube-proxy", "system:kube-proxy")
        config = runtime.kube_proxy_config(self.state, proxy, NODE, self.network)
        self._start(self._node, "kube-proxy", f"--config={config}")

    def _start(self, where: Processes, name: str, *flags: str) -> None:
        env = runtime.environment(self._programs)
        where.start(name, self._programs / name, *flags, env=env)

    def _identity(self, name: str, user: str, group: str = "") -> Path:
        path = self.state / "pki" / f"{name}.kubeconfig"
        return self.plane.certificates.kubeconfig(path, self.plane.url, user, group)

    def _is_node_ready(self) -> bool:
        status, node = self.plane.api.send("GET", f"/api/v1/nodes/{NODE}")
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        conditions = node.get("status", {}).get("conditions", []) if status == 200 else []
        is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        # Without the account, made some time after the start, no Pod is admitted.
        return is_ready and self.plane.api.send("GET", account)[0] == 200


def _as(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        # At the defaults, hundreds of Pods wait for the client's own limits.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def _check_machine() -> None:
    if os.geteuid() != 0:
        raise ClusterError("a node that runs Pods needs root; run `make test-cluster` as root")
    for name, package in {
        "runc": "runc",
        "iptables": "iptables",
        "conntrack": "conntrack",
        "ip": "iproute2",
        "unshare": "util-linux",
    }.items():
        of_this_machine(name, package)
