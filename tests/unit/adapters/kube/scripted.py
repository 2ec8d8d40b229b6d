"""An API server that answers as it is told, on a real socket, and notes what it was asked."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from proxy_operator.adapters.kube.access import ClusterAccess, Identity
from proxy_operator.adapters.kube.client import KubeClient

Write = Callable[[web.StreamResponse], Any]


def status(code: int, reason: str = "", message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
        "details": details,
    }


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    """The answer to one request: JSON, or the chunks of a stream that then ends or hangs."""

    code: int = 200
    document: Any = None
    chunks: tuple[bytes, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    cuts: bool = False
    """The connection breaks where the stream would end."""


class ScriptedApi:
    """Gives the answers in their order; the last one again and again."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = deque(answers)
        self.asked: list[Asked] = []
        self._ended = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append(
            Asked(request.method, request.path, {**request.query}, {**request.headers}, body)
        )
        answer = self.answers[0] if len(self.answers) == 1 else self.answers.popleft()
        if not answer.chunks and not answer.hangs:
            return web.json_response(answer.document, status=answer.code, headers=answer.headers)
        response = web.StreamResponse(status=answer.code, headers=answer.headers)
        response.content_type = "application/json"
        await response.prepare(request)
        for chunk in answer.chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if answer.hangs:
            await self._ended.wait()
        if answer.cuts and request.transport is not None:
            request.transport.abort()
        return response

    def end(self) -> None:
        self._ended.set()


class OneIdentity:
    """Credentials with a token each, the next one after every refusal."""

    def __init__(self, *tokens: str) -> None:
        self.identities = deque(_identity(token) for token in tokens or ("t1",))

    async def current(self) -> Identity:
        return self.identities[0]

    async def refresh(self, refused: Identity) -> bool:
        if len(self.identities) < 2:
            return False
        self.identities.popleft()
        return True


def _identity(token: str) -> Identity:
    headers = CIMultiDictProxy(CIMultiDict({"Authorization": f"Bearer {token}"}))
    return Identity(headers=headers, ssl=None)


def access_to(server: str, *tokens: str) -> ClusterAccess:
    return ClusterAccess(
        server=server,
        tls_server_name=None,
        credentials=OneIdentity(*tokens),
        namespace=None,
        proxy_url=None,
        source="a test",
    )


@asynccontextmanager
async def served(api: ScriptedApi, *tokens: str) -> AsyncIterator[KubeClient]:
    """Serve, and yield a client that is open."""
    runner = web.AppRunner(_app(api), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with KubeClient(access_to(f"http://{host}:{port}", *tokens)) as client:
            yield client
    finally:
        api.end()
        await runner.cleanup()


def _app(api: ScriptedApi) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    return app
