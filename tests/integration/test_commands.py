"""Every command on objects, in a cluster: what it says, how it ends."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.home import COMMAND, Ended, as_yaml, command, environment
from tests.e2e.origin import Origin
from tests.e2e.processes import until
from tests.integration.front import plain_kubeconfig
from tests.integration.replicas import QUICK, ClusterSite, a_managed, a_rented

BAD = a_rented("bad", 70000)


def sentence(ended: Ended, code: int = 1) -> str:
    """Return the one sentence that a refusal consists of."""
    assert (ended.code, ended.out) == (code, ""), ended
    (line,) = ended.err.splitlines()
    assert line.startswith("error: ")
    assert "unexpected" not in line
    return line.removeprefix("error: ")


@pytest.fixture
def nobody() -> Iterator[str]:
    """The URL of a port where nobody listens, and nobody will."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{holder.getsockname()[1]}"


def test_from_apply_to_delete(site: ClusterSite, origin: Origin):
    site.leader("--health-url", origin.http)
    fleet = as_yaml(a_rented("one", origin.port, healthCheck={"interval": "1s", "timeout": "1s"}))
    applied = site.cli("apply", "-f", "-", stdin=fleet)
    assert applied == (0, "proxy.crawl.example.com/one created\n", "")
    assert site.cli("apply", "-f", "-", stdin=fleet).out == (
        "proxy.crawl.example.com/one unchanged\n"
    )
    until(lambda: site.proxies()[0].get("status", {}).get("phase") == "Ready", "Ready")
    rows = [line.split()[:2] for line in site.cli("get", "proxies").out.splitlines()]
    assert rows == [["NAME", "PHASE"], ["one", "Ready"]]
    said = site.cli("describe", "proxy", "one").out
    assert f"Address:            127.0.0.1 port {origin.port}" in said
    assert "Events:" in said
    deleted = site.cli("delete", "proxy", "one")
    assert deleted == (0, 'proxy.crawl.example.com "one" deleted\n', "")
    assert site.proxies() == []
    assert "not found in namespace" in sentence(site.cli("get", "proxy", "one"))
    assert site.cli("get", "proxies").err == (
        f"No resources found in {site.namespace} namespace.\n"
    )


def test_manifests_that_are_refused(site: ClusterSite):
    said = sentence(site.cli("apply", "-f", "-", stdin=as_yaml(BAD)))
    assert "spec.endpoint.port" in said
    unknown = a_rented("bad", nonsense=1)
    assert "spec.nonsense" in sentence(site.cli("apply", "-f", "-", stdin=as_yaml(unknown)))
    assert site.proxies() == []


def test_watching(site: ClusterSite):
    out_path = site.root / "watch.out"
    site.create(a_rented("one"))
    with out_path.open("wb") as out:
        process = subprocess.Popen(
            [COMMAND, "get", "proxies", "-w", "-o", "name", *site.place()],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(),
            cwd=site.root,
        )
    try:
        lines = ["proxy.crawl.example.com/one"]
        until(lambda: out_path.read_text().splitlines() == lines, "a list")
        site.create(a_rented("two"))
        lines.append("proxy.crawl.example.com/two")
        until(lambda: out_path.read_text().splitlines() == lines, "a change")
        site.delete("one")
        lines.append("proxy.crawl.example.com/one")
        until(lambda: out_path.read_text().splitlines() == lines, "a deletion")
        process.terminate()
        process.wait(10)
    finally:
        process.kill()
        process.wait(10)


def test_down_with_an_operator(site: ClusterSite):
    replica = site.leader()
    site.create(a_managed("one"), a_rented("two"))
    until(lambda: len(site.pods()) == 1, "a Pod")
    ended = site.down()
    assert ended.code == 0, ended
    assert ended.out.endswith(
        f"\nin namespace {site.namespace} no Proxy is left, and no instance at kubernetes\n"
    )
    assert (site.proxies(), site.pods()) == ([], [])
    assert [verb for verb, _, _ in site.writes(replica.user, ["pods"])] == ["create", "delete"]
    assert replica.is_leader()
    assert site.leases() == ["proxy-operator"]


def test_down_without_an_operator(site: ClusterSite):
    replica = site.leader(*QUICK)
    site.create(a_managed("one"), a_rented("two"))
    until(lambda: len(site.pods()) == 1, "a Pod")
    replica.operator.kill()
    assert site.leases() == ["proxy-operator"]
    ended = site.down()
    assert ended.code == 0, ended
    assert ended.out.endswith(
        f"\nin namespace {site.namespace} no Proxy is left, and no instance at kubernetes\n"
    )
    assert (site.proxies(), site.pods(), site.leases()) == ([], [], [])


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "proxies"),
        ("down",),
        ("run",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_cluster_that_cannot_be_reached(tmp_path: Path, nobody: str, arguments: tuple[str, ...]):
    kubeconfig = plain_kubeconfig(tmp_path / "kubeconfig", nobody)
    ended = command(
        tmp_path,
        *arguments,
        *("--kubeconfig", str(kubeconfig)),
    )
    said = sentence(ended)
    address = nobody.removeprefix("https://")
    assert said == f"the API server cannot be reached: {address}: connection refused"
