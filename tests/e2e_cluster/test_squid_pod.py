"""One squid Pod as others find it: its clients, its origins, its node, and whoever reads along."""

import base64
import json
import socket
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from proxy_operator.adapters.providers.kubernetes.manifests import GRACE
from tests.e2e_cluster.crawling import Inside, Origin, Outside
from tests.e2e_cluster.fleet import USER, a_squid, credentials
from tests.e2e_cluster.installation import NAMESPACE, Installation
from tests.e2e_cluster.kube import Kube, until

PASSWORD = "Hunter2-s3cret!"
MEBIBYTE = 1 << 20


class SquidPod(NamedTuple):
    """A Ready Proxy of its own namespace, which enforces the restricted profile."""

    kube: Kube
    namespace: str
    proxy: dict[str, Any]

    @property
    def address(self) -> tuple[str, int]:
        (pod,) = self.kube.pods_of(self.proxy)
        return pod["status"]["podIP"], 3128

    def url(self, password: str | None = PASSWORD) -> str:
        login = "" if password is None else f"{USER}:{quote(password, safe='')}@"
        host, port = self.address
        return f"http://{login}{host}:{port}"

    def run(self, *command: str) -> str:
        """Run a command in the Pod."""
        (pod,) = self.kube.pods_of(self.proxy)
        name = pod["metadata"]["name"]
        return self.kube.kubectl("exec", f"--namespace={self.namespace}", name, "--", *command)


@pytest.fixture(scope="module")
def squid(kube: Kube, operator: Installation) -> Iterator[SquidPod]:
    with kube.namespace("squid") as namespace:
        kube.apply(credentials(namespace, "login", PASSWORD))
        kube.apply(a_squid(namespace, "one", secret="login"))
        yield SquidPod(kube, namespace, kube.wait_ready(namespace, "one"))


def test_an_origin_sees_the_clients_headers_and_no_others(squid: SquidPod, origin: Origin) -> None:
    sent = {"User-Agent": "crawler/1", "Accept": "*/*", "Cookie": "a=b"}
    noise = {"X-Forwarded-For": "192.0.2.7", "Proxy-Connection": "keep-alive"}

    page = Outside().ask(origin.http, proxy=squid.url(), headers={**sent, **noise})

    assert page.status == 200, page
    seen = {name.lower(): value for name, value in page.json["headers"]}
    added = {name: seen.pop(name) for name in ("connection", "accept-encoding", "host")}
    assert added == {
        "connection": "keep-alive",
        # The client's own.
        "accept-encoding": "identity",
        "host": origin.host,
    }
    assert seen == {name.lower(): value for name, value in sent.items()}


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "metadata.google.internal"])
def test_what_is_not_the_internet_is_denied(squid: SquidPod, scheme: str, host: str) -> None:
    assert Outside().ask(f"{scheme}://{host}/", proxy=squid.url()).status == 403


def test_the_cluster_itself_is_denied(squid: SquidPod, kube: Kube, operator: Installation) -> None:
    api_server = kube.get("api/v1/namespaces/default/services/kubernetes")
    assert api_server
    address = api_server["spec"]["clusterIP"]
    for url in (f"https://{address}/", f"{operator.api}/healthz"):
        assert Outside().ask(url, proxy=squid.url()).status == 403


def test_no_wrong_and_right_password(squid: SquidPod, origin: Origin, inside: Inside) -> None:
    for password, status in ((None, 407), (PASSWORD + "x", 407), (PASSWORD, 200)):
        pages = origin.fetch_both(inside, squid.url(password))
        assert [page.status for page in pages] == [status, status]


def test_its_memory_is_small_whatever_the_limit_of_files(squid: SquidPod, inside: Inside) -> None:
    limits = squid.run("cat", "/proc/1/limits")
    (files,) = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
    # What squid came to want, not the node's limit, by which it would size its tables.
    assert int(files[3]) <= 8192, files

    status = squid.run("cat", "/proc/1/status").splitlines()
    rows = dict(line.split(":", 1) for line in status)
    resident = int(rows["VmRSS"].split()[0]) * 1024
    assert resident < 48 * MEBIBYTE, rows["VmRSS"]


def test_the_password_is_nowhere_to_be_read(
    squid: SquidPod, kube: Kube, operator: Installation, origin: Origin, inside: Inside
) -> None:
    operator.lease(inside, namespace=squid.namespace)
    origin.fetch_both(inside, squid.url())
    login = f"{USER}:{PASSWORD}".encode()
    secrets = [PASSWORD, quote(PASSWORD, safe="")]
    secrets += [base64.b64encode(one).decode().rstrip("=") for one in (PASSWORD.encode(), login)]

    for where, text in readable(squid, kube, operator).items():
        assert text, where
        assert not [one for one in secrets if one in text], where


def readable(squid: SquidPod, kube: Kube, operator: Installation) -> dict[str, str]:
    """Return all that somebody may read who may not read the user's Secret."""
    place = f"api/v1/namespaces/{squid.namespace}"
    found = {
        kind: json.dumps(kube.items(f"{place}/{kind}")) for kind in ("pods", "configmaps", "events")
    }
    for secret in kube.items(f"{place}/secrets"):
        name = secret["metadata"]["name"]
        if name != "login":
            values = [base64.b64decode(value).decode() for value in secret["data"].values()]
            found[name] = json.dumps(secret) + "".join(values)
    assert len(found) == 4, "there is one Secret with a users file"
    found["proxy"] = json.dumps(kube.proxy(squid.namespace, "one"))
    here = f"--namespace={squid.namespace}"
    found["described"] = kube.kubectl("describe", here, "proxy,pod")
    found["squid's log"] = kube.kubectl("logs", here, "--selector=app.kubernetes.io/name=squid")
    selector = "--selector=app.kubernetes.io/name=proxy-operator"
    operators = f"--namespace={NAMESPACE}"
    found["operator's log"] = kube.kubectl("logs", operators, selector, "--tail=-1")
    for path in ("/v1/proxies", "/v1/leases"):
        found[path] = operator.ask(Outside(), "GET", path).text
    return found


def test_deleted_by_hand_it_ends_in_time_and_comes_again(squid: SquidPod, origin: Origin) -> None:
    (pod,) = squid.kube.pods_of(squid.proxy)
    uid = pod["metadata"]["uid"]

    def uids() -> list[str]:
        return [one["metadata"]["uid"] for one in squid.kube.pods_of(squid.proxy)]

    with a_tunnel(squid, origin):
        began = time.monotonic()
        here = f"--namespace={squid.namespace}"
        squid.kube.kubectl("delete", "pod", pod["metadata"]["name"], here, "--wait=false")
        until("end of the Pod", lambda: uid not in uids(), within=30)
        assert time.monotonic() - began < GRACE.total_seconds()

    until("Pod in its place", lambda: len(uids()) == 1, within=30)
    squid.kube.wait_ready(squid.namespace, "one")
    page = until(
        "page through the new Pod",
        lambda: [one for one in origin.fetch_both(Outside(), squid.url()) if one.status == 200],
        within=30,
    )
    assert len(page) == 2
    assert len(uids()) == 1


def a_tunnel(squid: SquidPod, origin: Origin) -> socket.socket:
    """Return an open connection through the proxy, which nobody uses."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    authority = f"{origin.host}:443"
    tunnel = socket.create_connection(squid.address, timeout=15)
    tunnel.sendall(
        f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n"
        f"Proxy-Authorization: Basic {login}\r\n\r\n".encode()
    )
    assert b" 200 " in tunnel.recv(4096)
    return tunnel
