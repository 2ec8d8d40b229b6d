"""What a user does from the first manifest to `down`, with real processes."""

import socket
import urllib.error
from urllib.parse import unquote, urlsplit

import pytest

from tests.e2e.home import Home, Operator, a_local, an_external, as_yaml, credentials
from tests.e2e.origin import Origin
from tests.e2e.processes import group_of, until

PASSWORDS = {
    "dollar": "p$x",
    "signs": "p@s:s/#%",
    "quotes": "\"q'",
    "long": "Aa0-" * 16,
    "foreign": "pässwörd-密码",
}
EU = {"region": "eu"}
SPARE = a_local("spare", attributes=EU, maxLeases=0)
TELLTALE = {"via", "forwarded", "x-forwarded-for", "proxy-authorization", "proxy-connection"}


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_from_the_first_manifest_to_the_last_instance(home: Home, origin: Origin):
    operator = begin(home, origin)
    lease_and_fetch(home, operator, origin)
    delete_some(home)
    left = {row["proxy"]["name"] for row in operator.ask("GET", "/v1/leases").body["leases"]}
    assert left == {"open"}
    ended = home.cli("down")
    assert ended.code == 0, ended
    assert ended.out.endswith("\nno Proxy is left\n")
    assert home.proxies() == {}
    assert home.launchers() == []
    assert home.instance_names() == []
    assert operator.stop() == 0


def begin(home: Home, origin: Origin) -> Operator:
    """Come to four Ready proxies: three by `run --apply`, one by `apply`."""
    file = home.root / "fleet.yaml"
    file.write_text(
        as_yaml(
            credentials("s", "p@s:s/#%"),
            a_local("open", egress="127.0.1.1", attributes=EU),
            a_local("auth", egress="127.0.1.2", attributes=EU, secret="s"),
            SPARE,
        )
    )
    operator = home.operator("--apply", str(file))
    home.wait_ready("open", "auth", "spare")
    port = home.proxies()["open"].status.port
    assert port
    rented = an_external("rented", port, origin.http, attributes={"region": "us"})
    applied = home.cli("apply", "-f", "-", stdin=as_yaml(rented))
    assert applied == (0, "proxy.crawl.example.com/rented created\n", "")
    home.wait_ready("rented")
    table = home.cli("get", "proxies").out
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [
        [name, "Ready"] for name in ("auth", "open", "rented", "spare")
    ]
    return operator


def lease_and_fetch(home: Home, operator: Operator, origin: Origin) -> None:
    """Lease by the command and by HTTP, fetch through both, report one as banned."""
    eu_for_a = ("--attr", "region=eu", "--target", "a.example")
    said = home.cli("lease", "--api", operator.api, *eu_for_a)
    assert said.code == 0, said
    mine, lease_id = said.out.strip(), said.err.split()[1]
    other = operator.lease(selector=EU, target="a.example")["proxy"]["url"]
    proxies = home.proxies()
    egress = {proxies["open"].status.port: "127.0.1.1", proxies["auth"].status.port: "127.0.1.2"}
    assert {urlsplit(mine).port, urlsplit(other).port} == {*egress}
    for url in (mine, other):
        for page in (origin.fetch(origin.http, url), origin.fetch(origin.https, url)):
            assert page["from"] == egress[urlsplit(url).port]
            assert not TELLTALE & {name.lower() for name in page["headers"]}

    banned = home.cli("report", lease_id, "banned", "--target", "a.example", "--api", operator.api)
    assert banned.code == 0, banned
    released = home.cli("release", lease_id, "--api", operator.api)
    assert released.code == 0, released
    for_a = [operator.lease(selector=EU, target="a.example") for _ in range(3)]
    assert {one["proxy"]["url"] for one in for_a} == {other}
    assert operator.lease(selector=EU, target="b.example")["proxy"]["url"] == mine


def delete_some(home: Home) -> None:
    """Delete by name and by manifest; the command returns when process, port and files are gone."""
    process, port = home.process_of("auth"), home.proxies()["auth"].status.port
    assert port
    assert is_open(port)
    assert len(home.instance_names()) == 3
    deleted = home.cli("delete", "proxy", "auth")
    assert deleted == (0, 'proxy.crawl.example.com "auth" deleted\n', "")
    assert group_of(process.group) == []
    assert not is_open(port)
    assert len(home.instance_names()) == 2
    assert home.proxy("auth") is None
    process = home.process_of("spare")
    deleted = home.cli("delete", "-f", "-", stdin=as_yaml(SPARE))
    assert deleted == (0, 'proxy.crawl.example.com "spare" deleted\n', "")
    assert group_of(process.group) == []
    assert len(home.instance_names()) == 1


@pytest.mark.slow
def test_down_without_an_operator_takes_everything(home: Home):
    operator = home.operator()
    home.apply(credentials("s", "p"), a_local("one", secret="s"), a_local("two"))
    home.wait_ready("one", "two")
    assert operator.stop() == 0
    assert len(home.launchers()) == 2
    ended = home.cli("down", "--deletion-poll", "200ms")
    assert ended.code == 0, ended
    assert ended.out.endswith("\nno Proxy is left, and no instance at local\n")
    assert home.proxies() == {}
    assert home.launchers() == []
    assert home.instance_names() == []


def test_awkward_passwords_work_from_secret_to_page(home: Home, origin: Origin):
    operator = home.operator()
    for name, password in PASSWORDS.items():
        home.apply(credentials(name, password), a_local(name, secret=name, attributes={"n": name}))
    home.wait_ready(*PASSWORDS)
    for name, password in PASSWORDS.items():
        proxy = operator.lease(selector={"n": name})["proxy"]
        assert (proxy["username"], proxy["password"]) == ("crawler", password)
        parts = urlsplit(proxy["url"])
        assert unquote(parts.password or "") == password
        for url in (origin.http, origin.https):
            assert origin.fetch(url, proxy["url"])["path"] == "/page"
            wrong = proxy["url"].replace(f":{parts.password}@", ":wrong@")
            for refused in (wrong, f"http://{parts.hostname}:{parts.port}"):
                with pytest.raises(urllib.error.URLError, match="407"):
                    origin.fetch(url, refused)


def test_a_proxy_that_is_gone_leaves_the_api_at_once(home: Home):
    operator = home.operator()
    home.apply(a_local("one"))
    home.wait_ready("one")
    held = operator.lease()
    home.delete("one")
    until(lambda: home.proxy("one") is None, "the Proxy is gone")
    assert operator.lease() is None
    renewed = operator.ask("POST", f"/v1/leases/{held['leaseID']}/renew", {})
    assert (renewed.status, renewed.body["error"]) == (404, "unknown_lease")
