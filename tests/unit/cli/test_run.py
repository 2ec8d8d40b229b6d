"""run and its session, with an operator played by hand; the real one is in the e2e tests."""

import asyncio
import os
import signal

import pytest

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.app.client import open_home
from proxy_operator.app.serving import Listening
from proxy_operator.app.settings import HomeAddress
from proxy_operator.cli import run as run_module
from proxy_operator.domain.proxy import Phase, Proxy, ProxyStatus
from tests.unit.cli.conftest import Shell, a_proxy_text

LISTENING = Listening(Bind("127.0.0.1", 18090), Bind("127.0.0.1", 2), Bind("127.0.0.1", 3))


@pytest.fixture(autouse=True)
def plain_loop(monkeypatch):
    # Signal handlers of the test process are put back by the loop that set them.
    monkeypatch.setattr("proxy_operator.app.serving.loop_factory", lambda: asyncio.new_event_loop)


async def play(settings, *, stop, on_started):
    """Make every Proxy Ready, then let Ctrl-C be pressed."""
    async with open_home(HomeAddress(data_dir=settings.data_dir), create=True) as home:
        on_started(LISTENING)
        while not (proxies := (await home.client.list(Proxy)).items):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for proxy in proxies:
            ready = proxy.draft()
            ready.status = ProxyStatus(phase=Phase.READY, ip="127.0.0.1", port=3128)
            await home.client.patch_status(ready)
    await asyncio.sleep(0.6)
    os.kill(os.getpid(), signal.SIGINT)
    await stop.wait()


def test_apply_follow_and_take_down(shell: Shell, monkeypatch):
    monkeypatch.setattr(run_module, "operator_of", lambda _: play)
    file = shell.write("m.yaml", a_proxy_text())
    ended = shell("run", "--standalone", "--apply", file, "--down-on-exit")
    assert ended.code == 0
    lines = ended.out.split("\n")
    assert lines[:2] == [
        f"proxy-operator runs on {shell.data_dir}",
        "proxy.crawl.example.com/p1 created",
    ]
    assert "  p1: Ready at 127.0.0.1:3128" in lines
    assert "1 of 1 proxies are Ready" in lines
    [curl] = [line for line in lines if line.startswith("  URL=")]
    assert curl.endswith(
        'lease --api http://127.0.0.1:18090) && curl -x "$URL" http://127.0.0.1:3/healthz'
    )
    assert lines[-4:] == [
        "deleting every Proxy (a second signal stops at once)",
        'proxy.crawl.example.com "p1" deleted',
        "no Proxy is left",
        "",
    ]
    assert shell("get", "proxies", "-o", "name").out == ""


def test_without_down_on_exit_the_proxies_stay(shell: Shell, monkeypatch):
    monkeypatch.setattr(run_module, "operator_of", lambda _: play)
    file = shell.write("m.yaml", a_proxy_text())
    ended = shell("run", "--standalone", "--apply", file)
    assert ended.code == 0
    assert "Ctrl-C stops the operator and leaves the proxies running." in ended.out
    assert shell("get", "proxies", "-o", "name").out == "proxy.crawl.example.com/p1\n"


def test_a_manifest_that_cannot_be_read_starts_nothing(shell: Shell, monkeypatch):
    async def fail(*_, **__):
        raise AssertionError("started")

    monkeypatch.setattr(run_module, "operator_of", lambda _: fail)
    ended = shell("run", "--standalone", "--apply", shell.write("m.yaml", "a: b: c"))
    assert ended.code == 1
    assert "line 1, column 5" in ended.err
    assert not shell.data_dir.exists()


def test_what_stops_the_operator_is_one_sentence(shell: Shell, monkeypatch):
    async def fail(*_, **__):
        raise OSError(98, "Address already in use")

    monkeypatch.setattr(run_module, "operator_of", lambda _: fail)
    ended = shell("run", "--standalone")
    assert ended == (1, "", "error: the address to listen on is taken: address already in use\n")
