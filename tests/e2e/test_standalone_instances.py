"""Instances that die, that nobody owns, and surroundings that must not matter."""

import os
import signal
import socket
import statistics
import time
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from proxy_operator.domain.proxy import Proxy
from proxy_operator.runtime.objects import MetadataPatch, ObjectKey, Preconditions
from tests.e2e.home import Home, Operator, a_local, an_external, credentials, is_ready
from tests.e2e.origin import Origin
from tests.e2e.processes import environment_of, group_of, identities, until

NEVER = ("--gc-interval", "1h")


def test_a_proxy_that_dies_while_leased_is_replaced(home: Home, origin: Origin):
    operator = home.operator()
    check = {"interval": "1s", "timeout": "1s", "url": origin.health}
    home.apply(credentials("s", "p"), a_local("one", secret="s", healthCheck=check))
    home.wait_ready("one")
    process, port = home.process_of("one"), home.proxies()["one"].status.port
    assert operator.lease() is not None
    origin.is_well.clear()
    try:
        os.killpg(process.group, signal.SIGKILL)
        until(lambda: group_of(process.group) == [], "it is dead")
        until(lambda: operator.lease() is None, "it is no longer offered", every=0.02)
        # Its successor listens, and is offered to nobody before a probe through it succeeds.
        until(lambda: home.proxies()["one"].status.port not in {None, port}, "it listens")
        until(lambda: home.health_reason("one") == "ProbeFailed", "it is probed")
        assert operator.lease() is None
    finally:
        origin.is_well.set()
    answer: Any = until(operator.lease, "its successor is offered", every=0.02)
    assert is_ready(home.proxies()["one"])
    assert origin.fetch(origin.http, answer["proxy"]["url"])["path"] == "/page"
    assert home.process_of("one").identity != process.identity
    assert len(home.launchers()) == len(home.instance_names()) == 1
    until(lambda: home.events("one").count("BecameHealthy") == 2, "the Events are written")
    told = home.events("one")
    assert {"InstanceStopped", "InstanceReplaced"} <= set(told)
    assert told.count("InstanceStarted") == 2


def test_an_edit_that_cannot_be_carried_out_leaves_the_instance_serving(home: Home, origin: Origin):
    operator = home.operator()
    home.apply(a_local("one"))
    home.wait_ready("one")
    process = home.process_of("one")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        home.apply(a_local("one", port=taken.getsockname()[1]))

        def is_refused() -> bool:
            [provisioned, *_] = home.proxies()["one"].status.conditions
            return "Address already in use" in provisioned.message

        until(is_refused, "the edit is refused")
        assert home.are_ready("one")
        assert home.process_of("one").identity == process.identity
        answer: Any = operator.lease()
        assert origin.fetch(origin.http, answer["proxy"]["url"])["path"] == "/page"
    home.apply(a_local("one", attributes={"tried": "again"}))
    home.wait_ready("one")
    assert home.process_of("one").identity == process.identity


def test_the_operators_own_api_is_no_target(home: Home, origin: Origin):
    operator = home.operator()
    home.apply(a_local("one"))
    home.wait_ready("one")
    process = home.process_of("one")
    url = operator.lease()["proxy"]["url"]
    assert operator.stop() == 0
    # An instance outlives the operator, and hears from the next one where its API is now.
    successor = home.operator()
    assert set(successor.ports.values()).isdisjoint(operator.ports.values())
    home.wait_ready("one")
    assert home.process_of("one").identity == process.identity
    for server in ("discovery", "metrics"):
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1.2.3"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                origin.fetch(f"http://{host}:{successor.ports[server]}/healthz", url)
    assert origin.fetch(origin.http, url)["path"] == "/page"


def orphan(home: Home) -> tuple[int, str]:
    """Leave an instance whose Proxy is gone; no operator runs afterwards."""
    operator = home.operator(*NEVER)
    home.apply(a_local("lost"), a_local("kept"))
    home.wait_ready("lost", "kept")
    group, name = home.process_of("lost").group, home.proxies()["lost"].status.provider_id
    assert operator.stop() == 0
    key, client = ObjectKey("default", "lost"), home.store.client
    meta = home.proxies()["lost"].metadata
    stripping = client.patch_metadata(
        Proxy, key, Preconditions(meta.uid, meta.resource_version), MetadataPatch(finalizers=())
    )
    home.run(stripping)
    home.run(client.delete(Proxy, key))
    assert [*home.proxies()] == ["kept"]
    assert name
    return group, name.removeprefix("local/")


def sweeps_of(operator: Operator) -> int:
    """Count the lists of instances that the collector has asked for."""
    text = operator.ask("GET", "/metrics", server="metrics").body
    return sum(
        int(float(line.rpartition(" ")[2]))
        for line in text.splitlines()
        if line.startswith("proxy_operator_provider_requests_total{") and 'op="list' in line
    )


def test_an_orphan_is_collected_when_it_is_old_enough(home: Home):
    group, name = orphan(home)
    kept = identities([home.process_of("kept")])
    for flags in (("--gc-min-age", "1h"), ("--gc-min-age", "1s", "--gc-dry-run")):
        sparing = home.operator("--gc-interval", "300ms", *flags)
        until(lambda one=sparing: sweeps_of(one) >= 2, "two sweeps")  # type: ignore[misc]
        assert sparing.stop() == 0
        told = sparing.said("an orphan would be deleted (dry run)")
        assert bool(told) == ("--gc-dry-run" in flags)
        assert all(one["provider_id"] == f"local/{name}" for one in told)
        assert sparing.said("an orphan is deleted") == []
        assert len(group_of(group)) == 1
        assert len(home.instance_names()) == 2
    operator = home.operator("--gc-interval", "300ms", "--gc-min-age", "1s")
    until(lambda: group_of(group) == [], "the orphan is gone")
    until(lambda: name not in home.instance_names(), "and its directory")
    until(lambda: home.events(name) == ["OrphanDeleted"], "an Event says so")
    assert identities(home.launchers()) == kept
    assert home.are_ready("kept")
    [said] = operator.said("an orphan is deleted")
    assert said["provider_id"] == f"local/{name}"


@pytest.fixture
def black_hole() -> Iterator[socket.socket]:
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen()
        hole.setblocking(False)
        yield hole


def test_proxy_variables_of_the_environment_have_no_influence(
    home: Home, origin: Origin, black_hole: socket.socket
):
    url = f"http://127.0.0.1:{black_hole.getsockname()[1]}"
    names = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")
    hostile = {spelt: url for name in names for spelt in (name, name.upper())}
    hostile |= {"no_proxy": "*", "NO_PROXY": "*"}
    authorities = home.root / "ca.pem"
    authorities.write_bytes(origin.authority)
    operator = home.operator("--probe-ca-file", str(authorities), env=hostile)
    home.apply(a_local("plain", attributes={"n": "plain"}))
    home.wait_ready("plain")
    port = home.proxies()["plain"].status.port
    assert port
    home.apply(an_external("tls", port, origin.https, attributes={"n": "tls"}))
    home.wait_ready("tls")
    for name in ("plain", "tls"):
        leased = home.cli("lease", "--api", operator.api, "--attr", f"n={name}", env=hostile)
        assert leased.code == 0, leased
        for page in (origin.http, origin.https):
            assert origin.fetch(page, leased.out.strip())["path"] == "/page"
    [launcher] = home.launchers()
    variables = environment_of(launcher.pid).rstrip("\0").split("\0")
    assert {one.partition("=")[0] for one in variables} == {"HOME", "LANG", "PATH"}
    with pytest.raises(BlockingIOError):
        black_hole.accept()


def test_a_write_of_another_process_is_acted_upon_soon(home: Home):
    operator = home.operator()
    home.apply(a_local("one", attributes={"n": "0"}))
    home.wait_ready("one")
    spans = []
    for number in range(1, 31):
        home.apply(a_local("one", attributes={"n": str(number)}))
        began = time.monotonic()
        until(lambda: home.are_ready("one"), "the generation is observed", every=0.002)
        spans.append(time.monotonic() - began)
    assert home.proxies()["one"].metadata.generation == 31
    assert operator.lease(selector={"n": "30"}) is not None
    p95 = statistics.quantiles(spans, n=20)[-1]
    assert p95 < 0.3, sorted(spans)
