"""A plain-HTTP front of an API server that gives answers of its own where it is told to.

TLS ends here, so status codes can be put in: what has no rule is passed on as one user's request.
"""

import json
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from tests.cluster.certificates import ADMINISTRATORS
from tests.cluster.control_plane import ControlPlane
from tests.integration.listener import Listener

_CHUNK = 65536


class Answer(NamedTuple):
    """What to say instead of the API server."""

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})


class _Rule:
    def __init__(self, method: str, part: str, answer: Answer, times: int) -> None:
        self.method = method
        self.part = part
        self.answer = answer
        self.left = times


class Front(Listener):
    """Passes on, or answers by itself."""

    def __init__(self, plane: ControlPlane, user: str) -> None:
        self._upstream = plane.url
        self._tls = ssl.create_default_context(cafile=str(plane.certificates.authority))
        self._tls.load_cert_chain(*plane.certificates.issue(user, user, ADMINISTRATORS))
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        super().__init__()

    def inject(self, method: str, part: str, answer: Answer, times: int = 1) -> None:
        """Give this answer to the next requests of that method with `part` in path or query."""
        with self._lock:
            self._rules.append(_Rule(method, part, answer, times))

    def left(self) -> list[tuple[str, str, int]]:
        """Return what was not asked for yet: method, part and status."""
        with self._lock:
            return [(rule.method, rule.part, rule.answer.status) for rule in self._rules]

    def _injected(self, request: web.Request) -> Answer | None:
        with self._lock:
            for rule in self._rules:
                if rule.method == request.method and rule.part in request.path_qs:
                    rule.left -= 1
                    if rule.left == 0:
                        self._rules.remove(rule)
                    return rule.answer
        return None

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _end(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        answer = self._injected(request)
        if answer is not None:
            headers = {"Content-Type": "application/json", **answer.headers}
            return web.Response(status=answer.status, body=answer.body, headers=headers)
        try:
            return await self._pass_on(request)
        except (aiohttp.ClientError, OSError):
            # As it looks from outside: the connection breaks, in whatever it was doing.
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        names = ("Accept", "Content-Type", "User-Agent")
        async with self._session.request(
            request.method,
            self._upstream + request.raw_path,
            headers={name: request.headers[name] for name in names if name in request.headers},
            data=await request.read() or None,
            ssl=self._tls,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            reply = web.StreamResponse(status=answer.status)
            reply.content_type = answer.content_type
            await reply.prepare(request)
            async for chunk in answer.content.iter_any():
                await reply.write(chunk)
            await reply.write_eof()
            return reply


def refusal(code: int, reason: str, retry_after: int | None = None) -> Answer:
    """Return the answer of an API server that refuses."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Answer(code, json.dumps(_status(code, reason)).encode(), headers)


def broken_off(code: int, reason: str) -> Answer:
    """Return a watch whose first line says that it is over."""
    line = {"type": "ERROR", "object": _status(code, reason)}
    return Answer(200, json.dumps(line).encode() + b"\n")


def _status(code: int, reason: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": f"put in by the test: {reason}",
        "code": code,
    }


def plain_kubeconfig(path: Path, server: str) -> Path:
    """Write a kubeconfig for a server that asks for no proof."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plain",
        "contexts": [{"name": "plain", "context": {"cluster": "plain", "user": "nobody"}}],
        "clusters": [{"name": "plain", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
    }
    path.write_text(json.dumps(config))
    return path
