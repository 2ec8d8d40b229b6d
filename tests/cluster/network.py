"""The addresses of a test node and its one link to this machine.

Each cluster takes the first number that is free, so several may run at once. Packets from inside
end at this machine: nothing is forwarded.
"""

import subprocess
from collections.abc import Sequence

from tests.cluster.programs import ClusterError, of_this_machine

CLUSTERS = 16


class Network:
    """Addresses, known after `make`, which gives the machine a link and routes."""

    def __init__(self) -> None:
        self._number = -1

    @property
    def _link(self) -> str:
        return f"potest{self._number}"

    @property
    def host(self) -> str:
        """This machine, as Pods find it."""
        return f"10.251.{self._number}.1"

    @property
    def node(self) -> str:
        return f"10.251.{self._number}.2"

    @property
    def pods(self) -> str:
        return f"10.{200 + self._number}.0.0/17"

    @property
    def services(self) -> str:
        return f"10.{200 + self._number}.128.0/17"

    @property
    def first_service(self) -> str:
        """Where Pods find the API server."""
        return f"10.{200 + self._number}.128.1"

    def make(self, pid: int, inside: Sequence[str]) -> None:
        """Link the network namespace of a process with this machine."""
        for number in range(CLUSTERS):
            self._number = number
            peer = ["type", "veth", "peer", "name", "eth0", "netns", str(pid)]
            if _ip("link", "add", self._link, *peer, may_fail=True):
                break
        else:
            self._number = -1
            raise ClusterError(f"{CLUSTERS} test nodes run already, or links may not be made here")
        for network in self._networks:
            _ip("route", "replace", *_barred(network))
        _ip("address", "add", f"{self.host}/30", "dev", self._link)
        _ip("link", "set", self._link, "up")
        _ip("route", "add", self.pods, "via", self.node)
        _ip("route", "add", self.services, "via", self.node)
        self._make_inside(inside)

    def remove(self) -> None:
        """Take the link away; its routes go with it. It may have gone with the namespace."""
        if self._number >= 0:
            _ip("link", "delete", self._link, may_fail=True)
            for network in self._networks:
                _ip("route", "delete", *_barred(network), may_fail=True)

    @property
    def _networks(self) -> tuple[str, ...]:
        return (f"10.251.{self._number}.0/30", self.pods, self.services)

    def _make_inside(self, inside: Sequence[str]) -> None:
        _ip("address", "add", f"{self.node}/30", "dev", "eth0", inside=inside)
        _ip("link", "set", "eth0", "up", inside=inside)
        # Services are reached by a route to anywhere; a bridge without ports leads nowhere.
        _ip("link", "add", "nowhere", "type", "bridge", inside=inside)
        _ip("link", "set", "nowhere", "up", inside=inside)
        _ip("route", "add", "default", "dev", "nowhere", inside=inside)
        for name in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
            subprocess.run([*inside, "sh", "-c", f"echo 1 >/proc/sys/net/{name}"], check=True)


def _barred(network: str) -> tuple[str, ...]:
    """Return the route that serves once the link is gone: without it, packets would leave."""
    return ("prohibit", network, "metric", "4294967295")


def _ip(*arguments: str, inside: Sequence[str] = (), may_fail: bool = False) -> bool:
    command = [*inside, of_this_machine("ip", "iproute2"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        raise ClusterError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.returncode == 0
