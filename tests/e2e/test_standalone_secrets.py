"""Passwords and tokens stay where they belong: in no output, no argument and no environment."""

import base64
import json
import stat
import urllib.error
from urllib.parse import quote

import pytest

from tests.e2e.home import TOKEN, Home, Operator, a_local, an_external, credentials
from tests.e2e.origin import Origin
from tests.e2e.processes import arguments_of, children_of, environment_of, until
from tests.spellings import spellings

PASSWORD = 'S3cr3t-päss/"w@rd'
WRONG = "Wr0ng-p@ssw0rd"


SPELLINGS = {one for text in (PASSWORD, WRONG, TOKEN) for one in spellings(text)}


def betrayed_by(text: str) -> set[str]:
    return {one for one in SPELLINGS if one in text}


@pytest.fixture(scope="module")
def operator(shared_home: Home, origin: Origin) -> Operator:
    """An operator that has probed right and wrong passwords, and leased."""
    home = shared_home
    operator = home.operator("--log-level", "debug")
    home.apply(credentials("s", PASSWORD), credentials("wrong", WRONG))
    home.apply(a_local("auth", secret="s"))
    home.wait_ready("auth")
    port = home.proxies()["auth"].status.port
    assert port
    ref = {"credentialsSecretRef": {"name": "wrong"}}
    home.apply(an_external("refused", port, origin.http, **ref))
    until(lambda: home.health_reason("refused") == "AuthFailed", "the wrong password is refused")
    url = operator.lease(target="a.example")["proxy"]["url"]
    assert origin.fetch(origin.https, url)["path"] == "/page"
    with pytest.raises(urllib.error.URLError, match="407"):
        origin.fetch(origin.http, url.replace(quote(PASSWORD, safe=""), quote(WRONG, safe="")))
    return operator


def test_a_secret_would_be_found():
    login = base64.b64encode(f"crawler:{PASSWORD}".encode()).decode()
    for text in (PASSWORD, f"Basic {login}", json.dumps({"p": PASSWORD}), quote(PASSWORD)):
        assert betrayed_by(f"... {text} ...")


def test_no_output_betrays_a_secret(shared_home: Home, operator: Operator):
    asked = [
        shared_home.cli("get", "secrets", "-o", "yaml"),
        shared_home.cli("get", "secrets", "-o", "json"),
        shared_home.cli("get", "proxies", "-o", "yaml"),
        shared_home.cli("describe", "proxy", "auth", "refused"),
        shared_home.cli("describe", "secret", "s"),
    ]
    for ended in asked:
        assert ended.code == 0, ended
        assert ended.out
        assert betrayed_by(ended.out + ended.err) == set()
    for path in ("/v1/leases", "/v1/proxies"):
        reply = operator.ask("GET", path)
        assert reply.status == 200
        assert reply.body["count"] > 0
        assert betrayed_by(json.dumps(reply.body, ensure_ascii=False)) == set()
    metrics = operator.ask("GET", "/metrics", server="metrics").body
    assert 'proxy="default/auth"' in metrics
    assert betrayed_by(metrics) == set()
    wrong = shared_home.cli("lease", "--api", operator.api, env={"DISCOVERY_TOKEN": f"{TOKEN}x"})
    assert wrong.code == 1
    assert betrayed_by(wrong.out + wrong.err) == set()
    assert operator.said("request served")
    assert betrayed_by(operator.output()) == set()


def test_no_process_betrays_a_secret(shared_home: Home, operator: Operator):
    [launcher] = shared_home.launchers()
    assert betrayed_by(" ".join(arguments_of(operator.pid))) == set()
    for one in (launcher, *children_of(operator.pid)):
        assert betrayed_by(" ".join(arguments_of(one.pid))) == set()
        assert betrayed_by(environment_of(one.pid)) == set()
    assert "HOME=" in environment_of(launcher.pid)


def test_every_file_is_its_owners_alone(shared_home: Home, operator: Operator):
    assert stat.S_IMODE(shared_home.data_dir.stat().st_mode) == 0o700
    found = [*shared_home.data_dir.rglob("*")]
    assert len(found) > 6
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) in ({0o700} if path.is_dir() else {0o600}), path
    for path in shared_home.instances.rglob("*"):
        if path.is_file():
            assert betrayed_by(path.read_text(errors="replace")) == set(), path
    assert operator.process.poll() is None
