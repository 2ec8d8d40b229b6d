"""A data directory, the installed command run on it, and a client of its store.

Whatever was started on it is ended by `close`, however the test went.
"""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sysconfig
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import yaml

from proxy_operator.app.client import Home as StoreHome
from proxy_operator.app.client import open_home
from proxy_operator.app.settings import HomeAddress
from proxy_operator.domain.proxy import Phase, Proxy
from proxy_operator.domain.secret import Secret
from proxy_operator.runtime.errors import NotFoundError
from proxy_operator.runtime.objects import ObjectKey
from tests.e2e.processes import Stat, end_launchers, launchers_in, stat_of, until
from tests.local_instances import names_in

T = TypeVar("T")

COMMAND = str(Path(sysconfig.get_path("scripts")) / "proxy-operator")
TOKEN = "Tok3n-of-the-tests"
BRISK = (
    *("--provisioning-poll", "200ms", "--deletion-poll", "200ms", "--requeue-now", "100ms"),
    *("--drift-poll", "1s"),
)
"""The operator's rhythm in tests."""
ANY_PORTS = (
    *("--discovery-bind", "127.0.0.1:0", "--metrics-bind", "127.0.0.1:0"),
    *("--health-probe-bind", "127.0.0.1:0"),
)


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    body: Any


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a process of a test sees: nothing of the machine's own settings."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(extra or {})}


def command(
    root: Path, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> Ended:
    """Run a command in a directory to its end."""
    ended = subprocess.run(
        [COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment({"DISCOVERY_TOKEN": TOKEN, **(env or {})}),
        cwd=root,
        timeout=40,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


class Operator:
    """`proxy-operator run` as a process."""

    def __init__(
        self, root: Path, name: str, flags: Sequence[str], extra: Mapping[str, str]
    ) -> None:
        """Start it in `root`, where its output goes to files of that name."""
        self.out_path = root / f"{name}.out"
        self.err_path = root / f"{name}.err"
        with self.out_path.open("wb") as out, self.err_path.open("wb") as err:
            self.process = subprocess.Popen(
                [COMMAND, "run", *flags],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment(extra),
                cwd=root,
                start_new_session=True,
            )
        self.ports: dict[str, int] = {}

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.ports['discovery']}"

    def output(self) -> str:
        return self.out_path.read_text() + self.err_path.read_text()

    def records(self) -> list[dict[str, Any]]:
        """Log records so far; a line that is half written is not one yet."""
        found = []
        for line in self.err_path.read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def said(self, message: str) -> list[dict[str, Any]]:
        return [one for one in self.records() if one.get("message") == message]

    def wait_until_started(self) -> "Operator":
        def are_listening() -> bool:
            assert self.process.poll() is None, self.output()
            self.ports = {
                one["server"]: int(one["address"].rpartition(":")[2])
                for one in self.said("listening")
            }
            return len(self.ports) == 3

        until(are_listening, "three servers listen")
        return self

    def ask(self, method: str, path: str, body: Any = None, *, server: str = "discovery") -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[server], timeout=10)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        content = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        with contextlib.suppress(ValueError):
            return Reply(response.status, json.loads(text))
        return Reply(response.status, text)

    def lease(self, **wanted: Any) -> Any:
        """Lease a proxy and return the answer; None when there is no match."""
        reply = self.ask("POST", "/v1/leases", wanted)
        assert reply.status in {201, 409}, reply
        return reply.body if reply.status == 201 else None

    def kill(self) -> None:
        """End it at once, and see it gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)

    def stop(self, number: int = signal.SIGTERM, *, within: float = 10.0) -> int:
        """Signal it and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=within)


class Home:
    """One data directory below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data_dir = root / "data"
        self.instances = self.data_dir / "instances"
        self.operators: list[Operator] = []
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()
        self._opened: StoreHome | None = None

    # Processes

    def launch(self, *flags: str, env: Mapping[str, str] | None = None) -> Operator:
        """Start an operator that asks for TOKEN, and return at once."""
        token = {"DISCOVERY_TOKEN": TOKEN}
        place = ("--standalone", "--data-dir", str(self.data_dir))
        operator = Operator(
            self.root,
            f"operator-{len(self.operators)}",
            (*place, *ANY_PORTS, *BRISK, *flags),
            {**token, **(env or {})},
        )
        self.operators.append(operator)
        return operator

    def operator(self, *flags: str, env: Mapping[str, str] | None = None) -> Operator:
        """Start an operator and return when it serves."""
        return self.launch(*flags, env=env).wait_until_started()

    def cli(self, *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Ended:
        """Run another command to its end."""
        place = () if arguments[0] in {"lease", "release", "report"} else ("--data-dir", "data")
        return command(self.root, *arguments, *place, stdin=stdin, env=env)

    def close(self) -> None:
        """End everything, in an order that leaves nobody to start anything again."""
        try:
            for operator in self.operators:
                operator.kill()
            self.close_store()
        finally:
            end_launchers(self.instances)
            self._runner.close()

    # Objects

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    @property
    def store(self) -> StoreHome:
        if self._opened is None:
            opening = self._stack.enter_async_context(
                open_home(HomeAddress(data_dir=self.data_dir), create=True)
            )
            self._opened = self.run(opening)
        return self._opened

    def close_store(self) -> None:
        self._opened = None
        self.run(self._stack.aclose())

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        for manifest in manifests:
            self.run(self.store.client.apply(manifest))

    def proxies(self) -> dict[str, Proxy]:
        found = self.run(self.store.client.list(Proxy)).items
        return {proxy.metadata.name: proxy for proxy in found}

    def proxy(self, name: str) -> Proxy | None:
        return self.proxies().get(name)

    def secrets(self) -> dict[str, Secret]:
        return {one.metadata.name: one for one in self.run(self.store.client.list(Secret)).items}

    def delete(self, name: str) -> None:
        """Ask for the end of a Proxy, and do not wait."""
        with contextlib.suppress(NotFoundError):
            self.run(self.store.client.delete(Proxy, ObjectKey("default", name)))

    def events(self, name: str) -> list[str]:
        """Reasons of the Events of that name, each as often as it happened."""
        told = self.run(self.store.events.events_of(ObjectKey("default", name)))
        return [one.event.reason for one in told for _ in range(one.times)]

    def health_reason(self, name: str) -> str:
        """Return why a Proxy is healthy or not."""
        rows = self.proxies()[name].status.conditions
        return next((row.reason for row in rows if row.type == "Healthy"), "")

    def are_ready(self, *names: str) -> bool:
        """Tell whether these, or all, are Ready at their generation and none is going."""
        proxies = self.proxies()
        chosen = [proxies.get(name) for name in names or proxies]
        return all(proxy is not None and is_ready(proxy) for proxy in chosen)

    def wait_ready(self, *names: str, within: float = 20.0) -> None:
        until(lambda: self.are_ready(*names), f"{names or 'all'} Ready", within=within)

    # Instances

    def instance_names(self) -> list[str]:
        return names_in(self.instances)

    def launchers(self) -> list[Stat]:
        return launchers_in(self.instances)

    def process_of(self, name: str) -> Stat:
        """Return the process of a Proxy's instance."""
        proxy = self.proxies()[name]
        assert proxy.status.provider_id
        directory = self.instances / proxy.status.provider_id.rpartition("/")[2]
        recorded = json.loads((directory / "process.json").read_text())
        stat = stat_of(recorded["pid"])
        assert stat is not None
        assert stat.start == recorded["start"]
        return stat


def is_ready(proxy: Proxy) -> bool:
    meta, status = proxy.metadata, proxy.status
    return (
        status.phase is Phase.READY
        and status.observed_generation == meta.generation
        and not meta.is_deleting
    )


def a_local(
    name: str,
    *,
    egress: str | None = None,
    engine: str | None = None,
    secret: str | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A manifest of a local proxy that is probed every second."""
    spec.setdefault("healthCheck", {"interval": "1s", "timeout": "1s"})
    local = {"egressAddress": egress, "engine": engine}
    if any(local.values()):
        spec["local"] = {field: value for field, value in local.items() if value}
    if secret:
        spec["credentialsSecretRef"] = {"name": secret}
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name},
        "spec": {"provider": "local", **spec},
    }


def an_external(name: str, port: int, url: str, **spec: Any) -> dict[str, Any]:
    """A manifest of a proxy somebody else runs on this machine."""
    return {
        "apiVersion": "crawl.example.com/v1alpha1",
        "kind": "Proxy",
        "metadata": {"name": name},
        "spec": {
            "mode": "External",
            "endpoint": {"host": "127.0.0.1", "port": port},
            "healthCheck": {"interval": "1s", "timeout": "1s", "url": url},
            **spec,
        },
    }


def credentials(name: str, password: str, username: str = "crawler") -> dict[str, Any]:
    """A manifest of a Secret that the operator sees."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "labels": {"crawl.example.com/credentials": "true"}},
        "stringData": {"username": username, "password": password},
    }


def as_yaml(*manifests: Mapping[str, Any]) -> str:
    return yaml.safe_dump_all(manifests, allow_unicode=True)
