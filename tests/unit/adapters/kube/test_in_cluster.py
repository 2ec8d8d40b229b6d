"""The service account of a Pod: where its server is, and files that change under us."""

import os
from pathlib import Path

import pytest
import trustme

from proxy_operator.adapters.kube.access import ClusterAccess, ClusterConfigError
from proxy_operator.adapters.kube.in_cluster import in_cluster_access
from tests.unit.adapters.kube.clusters import an_api_server, ask


def environ_of(server: str) -> dict[str, str]:
    host, port = server.removeprefix("https://").rsplit(":", 1)
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}


def replace(path: Path, content: bytes) -> None:
    """Put another file in its place, as a kubelet does."""
    new = path.with_name("new")
    new.write_bytes(content)
    os.replace(new, path)


@pytest.fixture
def mount(tmp_path: Path, authority: trustme.CA) -> Path:
    (tmp_path / "token").write_bytes(b"first\n")
    (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "namespace").write_bytes(b"crawl\n")
    return tmp_path


async def authorization_of(access: ClusterAccess) -> str:
    return (await access.credentials.current()).headers["Authorization"]


async def test_a_request(mount, clock, authority):
    async with an_api_server(authority) as server:
        access = in_cluster_access(mount, environ_of(server), clock)
        assert access.namespace == "crawl"
        assert "Authorization: Bearer first" in await ask(access)


def test_an_ipv6_address(mount, clock):
    access = in_cluster_access(mount, environ_of("https://fd00::1:443"), clock)
    assert access.server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("token", None, "token cannot be read: no such file"),
        ("token", b"", "token holds no token"),
        ("token", b"\xff", "token holds no token"),
        ("ca.crt", None, "ca.crt cannot be read: no such file"),
        ("ca.crt", b"", "ca.crt: no certificate in PEM is there"),
    ],
)
def test_a_broken_mount(mount, clock, name, content, sentence):
    (mount / name).unlink()
    if content is not None:
        (mount / name).write_bytes(content)
    with pytest.raises(ClusterConfigError) as caught:
        in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    assert sentence in str(caught.value)
    assert "the service account of this Pod" in str(caught.value)


async def test_a_replaced_token_is_used_within_a_second(mount, clock):
    access = in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    before = await access.credentials.current()
    assert await access.credentials.current() is before
    replace(mount / "token", b"second")
    clock.move(1)
    assert await authorization_of(access) == "Bearer second"
    assert (await access.credentials.current()).ssl is before.ssl


async def test_a_token_rewritten_unnoticeably_is_used_within_a_minute_or_after_a_401(mount, clock):
    access = in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    token = mount / "token"
    identity = await access.credentials.current()

    def rewrite(content: bytes) -> None:
        stat = token.stat()
        token.write_bytes(content)
        os.utime(token, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    rewrite(b"other\n")
    clock.move(1)
    assert await access.credentials.current() is identity
    clock.move(60)
    assert await authorization_of(access) == "Bearer other"
    rewrite(b"third\n")
    refused = await access.credentials.current()
    assert await access.credentials.refresh(refused)
    assert await authorization_of(access) == "Bearer third"


async def test_a_401_with_the_newest_token_is_final(mount, clock):
    access = in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    refused = await access.credentials.current()
    assert not await access.credentials.refresh(refused)
    replace(mount / "token", b"second")
    clock.move(1)
    await access.credentials.current()
    assert await access.credentials.refresh(refused), "that request went with the older token"


async def test_the_last_token_stays_while_the_file_is_broken(mount, clock, caplog):
    access = in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    identity = await access.credentials.current()
    (mount / "token").unlink()
    for _ in range(3):
        clock.move(1)
        assert await access.credentials.current() is identity
    assert [r.getMessage() for r in caplog.records] == ["the last token stays in use"]
    replace(mount / "token", b"second")
    clock.move(1)
    assert await authorization_of(access) == "Bearer second"


async def test_a_replaced_authority_is_believed_within_a_minute(mount, clock):
    other = trustme.CA()
    access = in_cluster_access(mount, environ_of("https://10.0.0.1:443"), clock)
    async with an_api_server(other) as server:
        access = in_cluster_access(mount, environ_of(server), clock)
        with pytest.raises(OSError, match="certificate"):
            await ask(access)
        replace(mount / "ca.crt", b"half a file")
        clock.move(60)
        with pytest.raises(OSError, match="certificate"):
            await ask(access)
        replace(mount / "ca.crt", other.cert_pem.bytes())
        clock.move(60)
        assert "Bearer first" in await ask(access)
