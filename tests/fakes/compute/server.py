"""The service over HTTP, with what surrounds a real one: a metadata server and a token endpoint.

Google's client libraries find both by GCE_METADATA_HOST and GCE_METADATA_IP. A connection that is
to be lost is closed without an answer.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from aiohttp import web

from proxy_operator.runtime.clock import Clock
from tests.fakes.compute.messages import ReplyLostError, Request
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.tokens import Tokens
from tests.fakes.compute.transport import InProcessTransport

MAX_BODY: Final = 4 * 1024 * 1024
EMAIL: Final = "operator@fake-project.iam.gserviceaccount.com"

_FLAVOR: Final = {"Metadata-Flavor": "Google"}
_ACCOUNT: Final = "/computeMetadata/v1/instance/service-accounts"


class Server:
    """Routes of one service."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self.service = service
        self.tokens = service.tokens or Tokens(clock)
        self._transport = InProcessTransport(service)

    def app(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_get("/", self._metadata_root)
        app.router.add_get("/computeMetadata/v1/", self._metadata_root)
        app.router.add_get("/computeMetadata/v1/project/project-id", _says(PROJECT))
        app.router.add_get("/computeMetadata/v1/universe/universe-domain", _says("googleapis.com"))
        app.router.add_get(f"{_ACCOUNT}/{{account}}/", self._account)
        app.router.add_get(f"{_ACCOUNT}/{{account}}/token", self._token)
        app.router.add_post("/token", self._token)
        app.router.add_route("*", "/compute/v1/{rest:.*}", self._api)
        return app

    async def _api(self, request: web.Request) -> web.StreamResponse:
        try:
            answer = await self._transport.send(
                Request(
                    method=request.method,
                    path=request.path,
                    query=dict(request.query),
                    headers={k.lower(): v for k, v in request.headers.items()},
                    body=await request.read(),
                )
            )
        except ReplyLostError:
            return _hang_up(request)
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    async def _metadata_root(self, _: web.Request) -> web.Response:
        return web.Response(text="computeMetadata/\n", headers=_FLAVOR)

    async def _account(self, _: web.Request) -> web.Response:
        account = {"aliases": ["default"], "email": EMAIL, "scopes": _SCOPES}
        return web.json_response(account, headers=_FLAVOR)

    async def _token(self, _: web.Request) -> web.Response:
        await asyncio.sleep(self.tokens.delay.total_seconds())
        issued = self.tokens.issue()
        if issued is None:
            said = {"error": "invalid_grant", "error_description": "No token at the moment."}
            return web.json_response(said, status=self.tokens.failure_status, headers=_FLAVOR)
        token, seconds = issued
        said_token = {"access_token": token, "expires_in": int(seconds), "token_type": "Bearer"}
        return web.json_response(said_token, headers=_FLAVOR)


_SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]


def _says(text: str) -> Callable[[web.Request], Any]:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=text, headers=_FLAVOR)

    return handler


def _hang_up(request: web.Request) -> web.Response:
    """Close the connection; what is returned goes nowhere."""
    if request.transport is not None:
        request.transport.close()
    return web.Response(status=499)


@asynccontextmanager
async def serving(server: Server, host: str, port: int) -> AsyncIterator[str]:
    """Serve until left; the value is the address, such as `http://127.0.0.1:8085`."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        bound = runner.addresses[0][1]
        yield f"http://{host}:{bound}"
    finally:
        await runner.cleanup()


def service_account_key(address: str, private_key: str) -> str:
    """Return a key file whose tokens come from this server, for GOOGLE_APPLICATION_CREDENTIALS."""
    key = {
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": "1",
        "private_key": private_key,
        "client_email": EMAIL,
        "client_id": "1",
        "token_uri": f"{address}/token",
    }
    return json.dumps(key)
