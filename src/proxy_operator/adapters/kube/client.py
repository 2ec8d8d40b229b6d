"""Requests to one kube-apiserver: connections, credentials, deadlines, retries.

A request is repeated only when the server cannot have carried it out, or when it changes nothing.
Knows paths and bytes; what they mean is the codec's.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from http import HTTPStatus
from types import TracebackType
from typing import Final, NamedTuple, Self

import aiohttp
from multidict import CIMultiDict

from proxy_operator import __version__
from proxy_operator.adapters.kube.access import ClusterAccess, Identity
from proxy_operator.adapters.kube.errors import error_of, read_status
from proxy_operator.adapters.kube.sockets import new_socket
from proxy_operator.adapters.kube.unreachable import reason_of
from proxy_operator.runtime.errors import UnavailableError
from proxy_operator.runtime.ratelimit import jittered

CONNECT: Final = timedelta(seconds=10)
"""To reach the server and to agree on TLS."""
ANSWER: Final = timedelta(seconds=30)
"""For a whole request that is no watch."""
ANSWER_BEGINS: Final = timedelta(seconds=15)
"""For the head of a watch's answer, the connection included."""
_ORDINARY: Final = aiohttp.ClientTimeout(
    total=ANSWER.total_seconds(), sock_connect=CONNECT.total_seconds()
)
_READ: Final = "GET"
_ATTEMPTS: Final = 4
_RETRY_BASE: Final = timedelta(milliseconds=100)
_RETRY_CAP: Final = timedelta(seconds=2)
_LONGEST_PAUSE: Final = 10.0
"""Seconds of `Retry-After` that are waited out here; the caller's backoff has the rest."""
_CONNECTIONS: Final = 64

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


class Request(NamedTuple):
    """One request. `subject` names what it is about, for messages."""

    method: str
    path: str
    subject: str
    query: Mapping[str, str] = {}
    body: bytes | None = None
    content_type: str = JSON


class KubeClient:
    """Sends requests as one identity. Open it with `async with`."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=_CONNECTIONS, keepalive_timeout=60, socket_factory=new_socket
            ),
            # Compressed lists cost both sides more time than the network between them.
            headers={
                "Accept": JSON,
                "Accept-Encoding": "identity",
                "User-Agent": f"proxy-operator/{__version__}",
            },
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            # A connection that a stream gave up closes in the loop's next turns.
            await asyncio.sleep(0)

    async def send(self, request: Request) -> bytes:
        """Return the body of a successful answer. Raises the errors of the object port."""
        for attempt in range(_ATTEMPTS):
            is_last = attempt == _ATTEMPTS - 1
            try:
                code, body, told = await self._exchange(request)
            except UnavailableError:
                if is_last or request.method != _READ:
                    raise
                told = 0.0
            else:
                if code < HTTPStatus.MULTIPLE_CHOICES:
                    return body
                if is_last or not _is_safe_to_repeat(request, code):
                    raise error_of(read_status(code, body), request.subject)
            pause = jittered(attempt, _RETRY_BASE, _RETRY_CAP).total_seconds()
            await asyncio.sleep(max(pause, min(told, _LONGEST_PAUSE)))
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(
        self, request: Request, *, silent_for: timedelta
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Open an answer without an end, such as a watch.

        UnavailableError when the answer does not begin in time, when the connection breaks, and
        when nothing comes for `silent_for`: a dead connection does not always say so.
        """
        limits = aiohttp.ClientTimeout(
            total=None,
            sock_connect=CONNECT.total_seconds(),
            sock_read=silent_for.total_seconds(),
        )
        with _as_unavailable(request):
            async with asyncio.timeout(ANSWER_BEGINS.total_seconds()):
                answer = await self._open(request, limits)
            try:
                if answer.status != HTTPStatus.OK:
                    body = await answer.read()
                    raise error_of(read_status(answer.status, body), request.subject)
                yield answer.content
            finally:
                _abandon(answer)

    async def _exchange(self, request: Request) -> tuple[int, bytes, float]:
        """Return code and body of the answer, and the seconds of its Retry-After."""
        with _as_unavailable(request):
            async with await self._open(request, _ORDINARY) as answer:
                body = await answer.read()
        return answer.status, body, _seconds(answer.headers.get("Retry-After", ""))

    async def _open(
        self, request: Request, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send, once more with fresh credentials on 401, and return the head of the answer."""
        credentials = self._access.credentials
        identity = await credentials.current()
        answer = await self._once(request, identity, limits)
        if answer.status == HTTPStatus.UNAUTHORIZED and await credentials.refresh(identity):
            answer.close()
            answer = await self._once(request, await credentials.current(), limits)
        return answer

    async def _once(
        self, request: Request, identity: Identity, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("the client is not open")
        headers = CIMultiDict(identity.headers)
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method,
            self._access.server + request.path,
            params=request.query,
            data=request.body,
            headers=headers,
            allow_redirects=False,
            ssl=identity.ssl or True,
            server_hostname=self._access.tls_server_name,
            proxy=self._access.proxy_url,
            timeout=limits,
        )


def _abandon(answer: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that has no end, without the goodbyes of TLS."""
    connection = answer.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    answer.close()


def _is_safe_to_repeat(request: Request, code: int) -> bool:
    """Tell whether the server has not carried the request out, or it would not matter."""
    if code == HTTPStatus.TOO_MANY_REQUESTS:
        return True
    return request.method == _READ and code >= HTTPStatus.INTERNAL_SERVER_ERROR


def _seconds(retry_after: str) -> float:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0


@contextmanager
def _as_unavailable(request: Request) -> Iterator[None]:
    try:
        yield
    except TimeoutError as err:
        raise UnavailableError(f"the API server does not answer about {request.subject}") from err
    except (aiohttp.ClientError, OSError) as err:
        raise UnavailableError(f"the API server cannot be reached: {reason_of(err)}") from err
