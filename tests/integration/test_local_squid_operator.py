"""The standalone operator with squid as the engine of local proxies: probes, leases, crashes."""

import os
import signal
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proxy_operator.adapters.providers.local.programs import find_squid
from proxy_operator.domain.proxy import LocalEngine, Phase
from tests.e2e import home as home_module
from tests.e2e.home import Home, Operator, a_local, credentials
from tests.e2e.origin import Origin
from tests.e2e.processes import everybody, group_of, identities, until
from tests.e2e.test_standalone_crashes import survive_crashes
from tests.local_instances import is_alive

PASSWORD = "p@s:s/#%"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    find_squid()
    made = Home(tmp_path)
    try:
        yield made
    finally:
        made.close()


def a_squid(name: str, **spec: Any) -> dict[str, Any]:
    return a_local(name, engine="squid", **spec)


def squid_of(home: Home, name: str) -> int:
    launcher = home.process_of(name).pid
    [squid] = [one.pid for one in everybody() if one.parent == launcher]
    return squid


def test_a_crawler_gets_its_page_and_nobody_else_does(home: Home, origin: Origin):
    # Probed against the operator's own /healthz, which is on loopback, and all else there denied.
    operator = home.operator()
    home.apply(credentials("s", PASSWORD), a_squid("one", secret="s"))
    home.wait_ready("one")
    url = operator.lease()["proxy"]["url"]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        origin.fetch(origin.http, url)
    assert operator.stop() == 0

    allowed = [word for page in (origin.http, origin.https) for word in allowing(page)]
    operator = home.operator(*allowed)
    home.wait_ready("one")
    assert operator.lease()["proxy"]["url"] == url
    until(lambda: fetched(origin, url), "what is allowed now is reached")
    page = origin.fetch(origin.http, url)
    assert set(page["headers"]) == {"Host", "User-Agent", "Accept-Encoding", "Connection"}
    assert origin.fetch(origin.https, url)["path"] == "/page"
    address = url.rpartition("@")[2]
    for stranger in (f"http://{address}", f"http://crawler:wrong@{address}"):
        with pytest.raises(urllib.error.HTTPError, match="407"):
            origin.fetch(origin.http, stranger)
    for server in ("discovery", "metrics"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            origin.fetch(f"http://127.0.0.1:{operator.ports[server]}/healthz", url)
    assert PASSWORD not in operator.output()


def allowing(page: str) -> tuple[str, str]:
    return "--allow-targets", page.split("/")[2]


def fetched(origin: Origin, url: str) -> bool:
    try:
        return bool(origin.fetch(origin.http, url))
    except OSError:
        return False


def test_a_killed_operator_is_followed_by_one_that_takes_over(home: Home):
    operator = home.operator()
    home.apply(credentials("s", PASSWORD), a_squid("one", secret="s"), a_squid("two"))
    home.wait_ready("one", "two")
    before, squids = identities(home.launchers()), [squid_of(home, n) for n in ("one", "two")]
    addresses = {name: one.address for name, one in home.proxies().items()}
    operator.kill()

    successor = home.operator()
    assert set(successor.ports.values()).isdisjoint(operator.ports.values())
    home.wait_ready("one", "two")
    until(lambda: successor.lease() and successor.lease(), "both are offered")
    # They were told where the new health endpoint is: probes go on to succeed.
    until(lambda: probes_that_succeeded(successor) >= 4, "two probes of each")
    assert identities(home.launchers()) == before
    assert [squid_of(home, name) for name in ("one", "two")] == squids
    assert {name: one.address for name, one in home.proxies().items()} == addresses


def probes_that_succeeded(operator: Operator) -> int:
    lines = operator.ask("GET", "/metrics", server="metrics").body.splitlines()

    def total(name: str) -> int:
        values = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{name}{{")]
        return int(sum(map(float, values)))

    failed = total("proxy_operator_healthcheck_failures_total")
    return total("proxy_operator_healthcheck_duration_seconds_count") - failed


def test_a_killed_squid_is_replaced(home: Home):
    home.operator()
    home.apply(a_squid("one"))
    home.wait_ready("one")
    before = home.process_of("one").identity
    os.kill(squid_of(home, "one"), signal.SIGKILL)

    def is_replaced() -> bool:
        found = home.launchers()
        return home.are_ready("one") and [one.identity for one in found] not in ([before], [])

    until(is_replaced, "another one is Ready")
    assert len(home.instance_names()) == 1


def test_a_crash_at_any_moment_loses_and_leaves_nothing(home: Home, origin: Origin):
    survive_crashes(home, origin, 5, LocalEngine.SQUID)
    shared = Path("/dev/shm")
    until(lambda: not [*shared.glob("proxy*.shm")], "no squid left anything in shared memory")


def test_another_engine_is_another_instance(home: Home):
    operator = home.operator()
    home.apply(a_local("one"))
    home.wait_ready("one")
    before = home.process_of("one").identity
    home.apply(a_squid("one"))
    until(lambda: home.are_ready("one") and home.process_of("one").identity != before, "replaced")
    assert squid_of(home, "one")
    home.apply(a_local("one"))
    until(lambda: home.are_ready("one") and not (instance_of(home) / "squid").exists(), "and back")
    assert operator.lease() is not None


def instance_of(home: Home) -> Path:
    [name] = home.instance_names()
    return home.instances / name


def test_down_leaves_no_process(home: Home):
    home.operator()
    home.apply(credentials("s", PASSWORD), a_squid("one", secret="s"))
    home.wait_ready("one")
    squid = squid_of(home, "one")
    group = home.process_of("one").group
    ended = home.cli("down")
    assert ended.code == 0, ended
    assert home.instance_names() == []
    assert group_of(group) == []
    assert not is_alive(squid)


WITHOUT_SQUID = """\
#!/bin/sh
exec unshare --mount {rights} sh -c 'mount --bind {nothing} {squid} && exec {command} "$@"' - "$@"
"""


def test_a_machine_without_squid_is_told_how_to_get_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    nothing = tmp_path / "nothing"
    nothing.touch(mode=0o644)
    script = tmp_path / "without-squid"
    text = WITHOUT_SQUID.format(
        rights="" if os.geteuid() == 0 else "--map-root-user",
        nothing=nothing,
        squid=find_squid().squid,
        command=home_module.COMMAND,
    )
    script.write_text(text)
    script.chmod(0o755)
    monkeypatch.setattr(home_module, "COMMAND", str(script))
    home.operator("--quota-retry", "1s")
    monkeypatch.undo()
    home.apply(a_squid("one"))
    until(lambda: phase_of(home, "one") == Phase.FAILED, "it is said")
    told = home.cli("describe", "proxy", "one").out
    assert "squid is not installed on this machine" in told
    assert "apt-get install squid" in told
    assert home.instance_names() == []
    # Nothing is latched: the way out that it names works.
    home.apply(a_local("one"))
    home.wait_ready("one")


def phase_of(home: Home, name: str) -> Phase | None:
    return home.proxies()[name].status.phase
