"""What kubeconfigs come to, and how wrong ones are told about."""

from pathlib import Path
from typing import Any

import pytest
import trustme

from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.kubeconfig import kubeconfig_access
from tests.unit.adapters.kube.clusters import (
    HandClock,
    a_kubeconfig,
    an_api_server,
    an_exec,
    ask,
    base64_of,
)


def access_of(*paths: Path, context: str | None = None) -> ClusterAccess:
    return kubeconfig_access(paths, context, {"PATH": "/usr/bin:/bin"}, HandClock())


async def headers_of(access: ClusterAccess) -> list[tuple[str, str]]:
    return [*(await access.credentials.current()).headers.items()]


async def test_a_token_and_a_namespace(tmp_path):
    path = a_kubeconfig(
        tmp_path / "config",
        cluster={"server": "https://api.example:6443/prefix/", "tls-server-name": "kube"},
        user={"token": "t0ken"},
        context={"namespace": "crawl"},
    )
    access = access_of(path)
    assert access.server == "https://api.example:6443/prefix"
    assert access.tls_server_name == "kube"
    assert access.namespace == "crawl"
    assert access.source == f'context "lab" of {path}'
    assert await headers_of(access) == [("Authorization", "Bearer t0ken")]


async def test_a_password(tmp_path):
    path = a_kubeconfig(tmp_path / "config", user={"username": "me", "password": "pw"})
    assert await headers_of(access_of(path)) == [("Authorization", "Basic bWU6cHc=")]


async def test_impersonation(tmp_path):
    user = {
        "token": "t",
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["a", "b"],
        "as-user-extra": {"Acme.com/Project": ["x"]},
    }
    headers = await headers_of(access_of(a_kubeconfig(tmp_path / "config", user=user)))
    assert headers == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-acme.com%2Fproject", "x"),
        ("Authorization", "Bearer t"),
    ]


async def test_nothing_secret_goes_over_plain_http(tmp_path):
    path = a_kubeconfig(
        tmp_path / "config", cluster={"server": "http://127.0.0.1:8001"}, user={"token": "t"}
    )
    identity = await access_of(path).credentials.current()
    assert not identity.headers
    assert identity.ssl is None


async def test_a_client_certificate_as_data_and_as_files_beside_the_kubeconfig(
    tmp_path, authority: trustme.CA
):
    mine = authority.issue_cert("me@example.com", common_name="me")
    chain, key = mine.cert_chain_pems[0].bytes(), mine.private_key_pem.bytes()
    (tmp_path / "pki").mkdir()
    for name, content in (("ca", authority.cert_pem.bytes()), ("me", chain), ("key", key)):
        (tmp_path / "pki" / name).write_bytes(content)
    async with an_api_server(authority) as server:
        by_data = a_kubeconfig(
            tmp_path / "data",
            cluster={
                "server": server,
                "certificate-authority-data": base64_of(authority.cert_pem.bytes()),
            },
            user={"client-certificate-data": base64_of(chain), "client-key-data": base64_of(key)},
        )
        by_file = a_kubeconfig(
            tmp_path / "files",
            cluster={"server": server, "certificate-authority": "pki/ca"},
            user={"client-certificate": "pki/me", "client-key": "pki/key"},
        )
        assert "me" in await ask(access_of(by_data))
        assert "(('commonName', 'me'),)" in await ask(access_of(by_file))


async def test_the_server_must_be_the_one_named(tmp_path, authority: trustme.CA):
    data = base64_of(authority.cert_pem.bytes())
    async with an_api_server(authority, "kube.example") as server:
        cluster: dict[str, Any] = {"server": server, "certificate-authority-data": data}
        path = a_kubeconfig(tmp_path / "config", cluster=cluster)
        with pytest.raises(OSError, match="certificate"):
            await ask(access_of(path))
        a_kubeconfig(path, cluster=cluster | {"tls-server-name": "kube.example"})
        assert "GET /" in await ask(access_of(path))
        a_kubeconfig(path, cluster={"server": server})
        with pytest.raises(OSError, match="certificate"):
            await ask(access_of(path))
        a_kubeconfig(path, cluster={"server": server, "insecure-skip-tls-verify": True})
        assert "GET /" in await ask(access_of(path))


async def test_the_first_file_decides_about_a_name(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "token").write_text("of-one\n")
    one = a_kubeconfig(tmp_path / "one" / "config", user={"tokenFile": "token"})
    two = a_kubeconfig(tmp_path / "two" / "config", user={"token": "of-two"})
    other = a_kubeconfig(tmp_path / "two" / "other", name="other", user={"token": "other"})
    missing = tmp_path / "missing"
    both = access_of(missing, one, two, other)
    assert await headers_of(both) == [("Authorization", "Bearer of-one")]
    chosen = access_of(one, two, other, context="other")
    assert await headers_of(chosen) == [("Authorization", "Bearer other")]
    assert chosen.source == f'context "other" of {other}'


async def test_entries_are_found_across_files(tmp_path):
    first = tmp_path / "first"
    first.write_text(
        "current-context: 2026-01-01\n"
        "users: null\n"
        "contexts: [{name: 2026-01-01, context: {cluster: on, user: lab}}]\n"
    )
    second = tmp_path / "second"
    second.write_text(
        "current-context: not-this\n"
        "clusters: [{name: on, cluster: {server: 'https://192.0.2.9', proxy-url: null}}]\n"
        "users: [{name: lab, user: {token: abc, exec: null}}]\n"
    )
    access = access_of(first, second)
    assert access.server == "https://192.0.2.9"
    assert await headers_of(access) == [("Authorization", "Bearer abc")]


def test_json_indented_with_tabs(tmp_path):
    path = a_kubeconfig(tmp_path / "config")
    path.write_text("{\n\t" + path.read_text()[1:])
    assert access_of(path).server == "https://192.0.2.1:6443"


def test_a_token_goes_before_a_plugin_which_is_checked_all_the_same(tmp_path):
    user = an_exec(tmp_path / "plugin", "", interactiveMode="Always") | {"token": "t"}
    with pytest.raises(ClusterConfigError, match=r"exec\.interactiveMode: is Always"):
        access_of(a_kubeconfig(tmp_path / "config", user=user))


V1 = "client.authentication.k8s.io/v1"
SECRET = "s3cret"


@pytest.mark.parametrize(
    ("cluster", "user", "sentence"),
    [
        ({"server": ""}, {}, 'cluster "lab", server: must be the URL of the API server'),
        ({"server": "localhost:8080"}, {}, "server: must be a URL such as"),
        ({"server": "https://h:99999"}, {}, "server: must be a URL such as"),
        ({"server": f"https://u:{SECRET}@h"}, {}, "server: must hold no user name"),
        ({"proxy-url": f"socks5://u:{SECRET}@h:1"}, {}, "proxy-url: must be the http://"),
        ({"certificate-authority-data": "%"}, {}, "certificate-authority-data: must be Base64"),
        ({"certificate-authority-data": "QQ=="}, {}, "no certificate in PEM is there"),
        ({"certificate-authority": "ca"}, {}, "certificate-authority: DIR/ca cannot be read: no"),
        (
            {"certificate-authority": "ca", "insecure-skip-tls-verify": True},
            {},
            "insecure-skip-tls-verify: must not be true together",
        ),
        ({"insecure-skip-tls-verify": SECRET}, {}, "is no kubeconfig: Expected `bool"),
        ({}, {"token": 12345}, "is no kubeconfig: Expected `str | null`, got `int`"),
        ({}, {"token": f"{SECRET} two"}, 'user "lab", token: must be one word'),
        ({}, {"token": SECRET, "username": "u"}, "token: must not stand together"),
        ({}, {"username": "a:b", "password": SECRET}, "username: must hold no colon"),
        ({}, {"tokenFile": "none"}, "tokenFile: DIR/none cannot be read: no such file"),
        ({}, {"client-certificate-data": "QQ=="}, "client-key: must be given"),
        (
            {},
            {"client-certificate-data": "QQ==", "client-key-data": "QQ=="},
            "client-certificate-data: no client certificate and key in PEM can be read",
        ),
        ({}, {"auth-provider": {"name": "oidc"}}, "auth-provider: is gone"),
        ({}, {"as-groups": ["x"]}, "as: must name the user"),
        ({}, {"as": "a\r\nb"}, "as: makes a header Impersonate-User that"),
        ({}, {"exec": {"command": "x"}}, "exec.apiVersion: must be client.auth"),
        ({}, {"exec": {"apiVersion": V1, "command": "x"}}, "exec.interactiveMode: must be Never"),
        (
            {},
            {"exec": {"apiVersion": V1, "interactiveMode": "Never"}},
            "exec.command: must name the plugin",
        ),
        (
            {},
            {
                "exec": {
                    "apiVersion": V1,
                    "command": "x",
                    "interactiveMode": "Never",
                    "env": [{"name": "", "value": SECRET}],
                }
            },
            "exec.env: must hold variables",
        ),
    ],
)
def test_a_wrong_entry_is_named_without_its_secrets(tmp_path, cluster, user, sentence):
    path = a_kubeconfig(tmp_path / "config", cluster=cluster, user=user)
    with pytest.raises(ClusterConfigError) as caught:
        access_of(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert sentence.replace("DIR", str(tmp_path)) in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a: [", "is no YAML: line 2, column 1: did not find"),
        ("- 1", "is no kubeconfig: Expected `object`, got `array`"),
        ("kind: Pod", "must be of kind Config"),
        ("", "current-context is not set; choose with --context (contexts: none)"),
        ("current-context: x", 'current-context names context "x", which does not exist'),
        ("[" * 20_000, "is no YAML"),
        ("\x00", "is no YAML"),
    ],
)
def test_a_file_that_is_no_kubeconfig(tmp_path, text, sentence):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ClusterConfigError) as caught:
        access_of(path)
    assert sentence in str(caught.value)


def test_names_that_lead_nowhere(tmp_path):
    path = a_kubeconfig(tmp_path / "config", context={"user": "gone"})
    with pytest.raises(ClusterConfigError, match=r'"lab", user: there is no user "gone"'):
        access_of(path)
    a_kubeconfig(path, context={"cluster": "gone"})
    with pytest.raises(ClusterConfigError, match=r'cluster: there is no cluster "gone"'):
        access_of(path)
    with pytest.raises(ClusterConfigError, match=r'"no", which does not exist \(contexts: "lab"'):
        access_of(path, context="no")
    with pytest.raises(ClusterConfigError, match="no such kubeconfig: /nowhere/config"):
        access_of(Path("/nowhere/config"))
    with pytest.raises(ClusterConfigError, match="cannot be read: is a directory"):
        access_of(tmp_path)


async def test_secrets_stay_out_of_repr(tmp_path):
    path = a_kubeconfig(
        tmp_path / "config",
        cluster={"proxy-url": f"http://u:{SECRET}@192.0.2.3:3128"},
        user={"token": SECRET},
    )
    access = access_of(path)
    assert access.proxy_url == f"http://u:{SECRET}@192.0.2.3:3128"
    assert SECRET not in repr(access)
    assert SECRET not in repr(await access.credentials.current())


async def test_a_401_after_the_certificate_was_renewed_is_tried_again(
    tmp_path, authority: trustme.CA
):
    def renew() -> None:
        own = authority.issue_cert("me@example.com")
        (tmp_path / "me").write_bytes(own.cert_chain_pems[0].bytes())
        (tmp_path / "key").write_bytes(own.private_key_pem.bytes())

    renew()
    user = {"client-certificate": "me", "client-key": "key"}
    credentials = access_of(a_kubeconfig(tmp_path / "config", user=user)).credentials
    refused = await credentials.current()
    assert not await credentials.refresh(refused)
    renew()
    assert await credentials.refresh(refused)
    assert (await credentials.current()).ssl is not refused.ssl
