"""What a test node's containerd, kubelet and kube-proxy are told.

Written for small machines: no systemd, control groups of either version, no right to raise
limits or to change the kernel's settings.
"""

import json
import os
from pathlib import Path
from typing import Any

from tests.cluster.network import Network
from tests.cluster.processes import Processes
from tests.cluster.programs import of_this_machine


def socket(state: Path) -> Path:
    """Return where containerd listens."""
    return state / "containerd.sock"


def start_containerd(processes: Processes, programs: Path, state: Path, network: Network) -> None:
    """Start containerd and wait until it answers."""
    cni = state / "node" / "cni"
    cni.mkdir()
    plugins = [
        {
            "type": "bridge",
            "bridge": "cni0",
            "isGateway": True,
            "ipMasq": True,
            # A Pod may reach itself through its Service.
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": network.pods}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    conflist = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
    (cni / "10-pods.conflist").write_text(json.dumps(conflist))
    config = state / "containerd.toml"
    config.write_text(_containerd_config(programs, state, cni))
    env = environment(programs)
    processes.start("containerd", programs / "containerd", f"--config={config}", env=env)
    processes.wait_until("containerd", socket(state).exists, within=30)


def environment(programs: Path) -> dict[str, str]:
    """Return the environment in which the programs find each other."""
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"}


def _containerd_config(programs: Path, state: Path, cni: Path) -> str:
    cri = "plugins.'io.containerd.cri.v1"
    return f"""\
version = 3
root = '{state}/containerd'
state = '{state}/containerd-run'
[grpc]
address = '{socket(state)}'
[plugins.'io.containerd.internal.v1.opt']
path = '{state}/containerd-opt'
[{cri}.images'.pinned_images]
sandbox = 'localhost/pause:1'
[{cri}.runtime']
# Without CAP_SYS_RESOURCE runc fails where it may not lower a process's OOM score.
restrict_oom_score_adj = true
[{cri}.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[{cri}.runtime'.containerd.runtimes.runc.options]
BinaryName = '{of_this_machine("runc", "runc")}'
SystemdCgroup = false
[{cri}.runtime'.cni]
bin_dirs = ['{programs}/cni']
conf_dir = '{cni}'
"""


def kubelet_config(state: Path, authority: Path, serving: tuple[Path, Path]) -> Path:
    """Write the kubelet's configuration; `serving` is its certificate and key as a server."""
    resolv = state / "resolv.conf"
    resolv.touch()
    # The disk and the memory are the machine's, not the tests' business.
    signals = [
        *("memory.available", "nodefs.available", "nodefs.inodesFree"),
        *("imagefs.available", "imagefs.inodesFree"),
    ]
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(serving[0]),
        "tlsPrivateKeyFile": str(serving[1]),
        "containerRuntimeEndpoint": f"unix://{socket(state)}",
        "cgroupDriver": "cgroupfs",
        # Refused by default since Kubernetes 1.35.
        "failCgroupV1": False,
        "failSwapOn": False,
        "resolvConf": str(resolv),
        "evictionHard": dict.fromkeys(signals, "0%"),
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "5s",
    }
    return _write(state / "kubelet.json", config)


def kube_proxy_config(state: Path, kubeconfig: Path, node: str, network: Network) -> Path:
    """Write kube-proxy's configuration."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": node,
        "mode": "iptables",
        "clusterCIDR": network.pods,
        # Zero leaves the kernel's settings alone, which are the machine's.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }
    return _write(state / "kube-proxy.json", config)


def _write(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(json.dumps(config, indent=1))
    return path
