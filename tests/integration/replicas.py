"""Operators on one API server, each a process with a user and a network of its own."""

import contextlib
import itertools
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from proxy_operator.domain.names import UID_LABEL
from tests.cluster.certificates import ADMINISTRATORS
from tests.cluster.control_plane import ControlPlane
from tests.e2e.home import ANY_PORTS, BRISK, TOKEN, Ended, Operator, command
from tests.e2e.processes import until
from tests.integration.relay import Relay

QUICK = (
    *("--leader-lease-duration", "3s", "--leader-renew-deadline", "2s"),
    *("--leader-retry-period", "500ms"),
)
"""An election in tests."""
LEASE_SECONDS = 3.0
MUTATIONS = frozenset({"create", "update", "patch", "delete", "deletecollection"})

_numbers = itertools.count()


class Replica:
    """An operator and the only way it has to the API server."""

    def __init__(self, user: str, relay: Relay, operator: Operator) -> None:
        self.user = user
        self.relay = relay
        self.operator = operator

    def is_leader(self) -> bool:
        return bool(self.operator.said("leading"))

    def readiness(self) -> tuple[int, str]:
        answer = self.operator.ask("GET", "/readyz", server="health-probe")
        return answer.status, str(answer.body)


class ClusterSite:
    """A namespace of the session's API server, and what a test runs on it."""

    def __init__(self, plane: ControlPlane, root: Path) -> None:
        self.plane = plane
        self.root = root
        self.namespace = f"site-{uuid.uuid4().hex[:8]}"
        self._relays = contextlib.ExitStack()
        self._operators: list[Operator] = []
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        self.send("POST", "/api/v1/namespaces", body)
        # No controller is here to make it, and no Pod can be made without it.
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        self.send("POST", self.path("serviceaccounts"), account)

    def close(self) -> None:
        """End every process, then take away what no operator is left to take away."""
        for operator in self._operators:
            operator.kill()
        self._relays.close()
        for proxy in self.proxies():
            name = proxy["metadata"]["name"]
            if proxy["metadata"].get("finalizers"):
                self.merge(name, {"metadata": {"finalizers": None}})
            self.plane.api.send("DELETE", self.path("proxies", name))

    # Processes

    def relay(self) -> Relay:
        return self._relays.enter_context(Relay(self.plane.url))

    def kubeconfig(self, user: str, server: str) -> Path:
        return self.plane.certificates.kubeconfig(
            self.root / f"{user}.kubeconfig", server, user, ADMINISTRATORS
        )

    def launch(
        self, *flags: str, relay: Relay | None = None, kubeconfig: Path | None = None
    ) -> Replica:
        """Start an operator for this namespace behind a relay, and return at once.

        It is a user of its own, unless a kubeconfig for that relay says otherwise.
        """
        user = f"replica-{next(_numbers)}"
        relay = relay or self.relay()
        place = (
            *("--kubeconfig", str(kubeconfig or self.kubeconfig(user, relay.url))),
            *("--leader-namespace", self.namespace, "--watch-namespace", self.namespace),
        )
        flags = (*place, *ANY_PORTS, *BRISK, *flags)
        operator = Operator(self.root, user, flags, {"DISCOVERY_TOKEN": TOKEN})
        self._operators.append(operator)
        return Replica(user, relay, operator)

    def replica(
        self, *flags: str, relay: Relay | None = None, kubeconfig: Path | None = None
    ) -> Replica:
        """Start an operator and return when its servers listen."""
        replica = self.launch(*flags, relay=relay, kubeconfig=kubeconfig)
        replica.operator.wait_until_started()
        return replica

    def leader(
        self, *flags: str, relay: Relay | None = None, kubeconfig: Path | None = None
    ) -> Replica:
        """Start an operator and return when it leads."""
        replica = self.replica(*flags, relay=relay, kubeconfig=kubeconfig)
        until(replica.is_leader, "an operator leads")
        return replica

    def place(self) -> tuple[str, ...]:
        """Return the options by which a command finds this namespace, as a user of its own."""
        kubeconfig = self.kubeconfig(f"person-{next(_numbers)}", self.plane.url)
        return "--kubeconfig", str(kubeconfig), "--namespace", self.namespace

    def cli(self, *arguments: str, stdin: str = "") -> Ended:
        """Run a command on objects in this namespace to its end."""
        return command(self.root, *arguments, *self.place(), stdin=stdin)

    def down(self) -> Ended:
        """Run `down` for this namespace to its end."""
        kubeconfig = self.kubeconfig(f"person-{next(_numbers)}", self.plane.url)
        return command(
            self.root,
            "down",
            *("--kubeconfig", str(kubeconfig), "--leader-namespace", self.namespace),
            *("--deletion-poll", "200ms", *QUICK),
            env={"PROXY_OPERATOR_WATCH_NAMESPACE": self.namespace},
        )

    # Objects

    def send(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        status, answer = self.plane.api.send(method, path, body)
        assert status < 300, answer
        return answer

    def path(self, plural: str, name: str = "") -> str:
        prefix = "apis/crawl.example.com/v1alpha1" if plural == "proxies" else "api/v1"
        return f"/{prefix}/namespaces/{self.namespace}/{plural}{name and '/'}{name}"

    def create(self, *manifests: dict[str, Any]) -> None:
        for manifest in manifests:
            plural = "proxies" if manifest["kind"] == "Proxy" else "secrets"
            self.send("POST", self.path(plural), manifest)

    def merge(self, name: str, patch: dict[str, Any]) -> None:
        """Change a Proxy, whatever it is by now."""
        while True:
            obj = self.send("GET", self.path("proxies", name))
            status, answer = self.plane.api.send(
                "PUT", self.path("proxies", name), _merged(obj, patch)
            )
            if status != 409:
                assert status == 200, answer
                return

    def delete(self, name: str) -> None:
        self.send("DELETE", self.path("proxies", name))

    def proxies(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.send("GET", self.path("proxies"))["items"]
        return found

    def pods(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.send("GET", self.path("pods"))["items"]
        return found

    def leases(self) -> list[str]:
        """Return the names of the Leases of leaders here."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        return [one["metadata"]["name"] for one in self.send("GET", path)["items"]]

    def owners_of_pods(self) -> list[str]:
        """Return the UIDs of the Proxies that the Pods are of, one for each Pod."""
        return sorted(pod["metadata"]["labels"][UID_LABEL] for pod in self.pods())

    def makers_of_pods(self) -> list[str]:
        """Return the user that made each Pod there ever was here."""
        return [
            event["user"]["username"]
            for event, ref in self._events()
            if (event["verb"], ref["resource"]) == ("create", "pods") and event_code(event) == 201
        ]

    def unsettled(self) -> list[str]:
        """Return the names of Proxies whose status is not about their present generation."""
        return [
            proxy["metadata"]["name"]
            for proxy in self.proxies()
            if proxy.get("status", {}).get("observedGeneration") != proxy["metadata"]["generation"]
            or "deletionTimestamp" in proxy["metadata"]
        ]

    def wait_settled(self, *, within: float = 20.0) -> None:
        until(lambda: not self.unsettled(), f"settled: {self.unsettled()}", within=within)

    # The audit log

    def writes(
        self, user: str, resources: Iterable[str] = ("proxies", "pods", "secrets", "configmaps")
    ) -> list[tuple[str, str, int]]:
        """Return verb, object and answer of each change that a user asked for here, in order."""
        return [
            (event["verb"], f"{ref['resource']}/{ref.get('name', '')}", event_code(event))
            for event, ref in self._events()
            if event["user"]["username"] == user
            and event["verb"] in MUTATIONS
            and ref["resource"] in set(resources)
        ]

    def _events(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for event in self.plane.audited():
            ref = event.get("objectRef", {})
            if ref.get("namespace") == self.namespace:
                yield event, ref


def event_code(event: dict[str, Any]) -> int:
    code: int = event.get("responseStatus", {}).get("code", 0)
    return code


def a_managed(name: str, **spec: Any) -> dict[str, Any]:
    """A manifest of a proxy that is a Pod."""
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name},
        "spec": {"provider": "kubernetes", **spec},
    }


def a_rented(name: str, port: int = 9, **spec: Any) -> dict[str, Any]:
    """A manifest of a proxy somebody else runs; nobody listens on the discard port."""
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name},
        "spec": {"mode": "External", "endpoint": {"host": "127.0.0.1", "port": port}, **spec},
    }


def _merged(old: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        else:
            new[name] = _merged(new.get(name), value)
    return new
