"""Kubeconfigs, and API servers on loopback that tell what they were sent."""

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import trustme

from proxy_operator.adapters.kube.access import ClusterAccess, Identity


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds


def a_kubeconfig(
    path: Path,
    *,
    name: str = "lab",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
) -> Path:
    """Write a kubeconfig whose context, cluster and user all have one name."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | (context or {})}],
        "clusters": [
            {"name": name, "cluster": {"server": "https://192.0.2.1:6443"} | (cluster or {})}
        ],
        "users": [{"name": name, "user": user or {}}],
    }
    path.write_text(json.dumps(document))
    return path


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode()


def an_exec(script: Path, source: str, **members: Any) -> dict[str, Any]:
    """Write a plugin in Python and return the user that runs it."""
    script.write_text(f"#!{sys.executable} -IS\n{source}")
    script.chmod(0o700)
    config = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(script),
        "interactiveMode": "Never",
    }
    return {"exec": config | members}


@asynccontextmanager
async def an_api_server(authority: trustme.CA, name: str = "127.0.0.1") -> AsyncIterator[str]:
    """Serve HTTPS, asking for a client certificate; the answer is the head, then its subject."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(name).configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                shown = writer.get_extra_info("peercert") or {}
                subject = str(shown.get("subject", "")).encode()
                body = head + subject
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(0)


async def ask(access: ClusterAccess, identity: Identity | None = None) -> str:
    """Return what the server saw of one request."""
    identity = identity or await access.credentials.current()
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            access.server,
            headers=identity.headers,
            ssl=identity.ssl or True,
            server_hostname=access.tls_server_name,
        ) as answer,
    ):
        return await answer.text()
