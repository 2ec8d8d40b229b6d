"""Requests with application default credentials, through the library google-auth.

The library is the extra `gcp`: it is imported here only, and only when a session is made. A rule
a visitor must keep: what the library says never reaches a message, for it may hold addresses of
objects, tokens and times. Of files that it cannot read, `credentials_fault` knows what may be told.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from proxy_operator.adapters.providers.gcp.credentials_fault import credentials_fault
from proxy_operator.adapters.providers.gcp.session import Document, Reply
from proxy_operator.provisioning.errors import EnvironmentProviderError, TransientProviderError

TIMEOUT_S: Final = 10.0
"""From asking for a token to the last byte of the answer."""
LOOK_AGAIN_S: Final = 30.0
"""Looking for credentials where there are none takes some ten seconds: no metadata server answers,
and it is asked three times."""
_SCOPES: Final = ("https://www.googleapis.com/auth/compute",)
# What the library lets through about a file: a directory, no rights, a list in place of an object.
_FILE_ERRORS: Final = (OSError, ValueError, TypeError, LookupError, AttributeError)
_EXTRA: Final = (
    'provider gcp needs the extra gcp: install it with pip install "proxy-operator[gcp]"'
)


def require_library() -> None:
    """Import what this module needs. EnvironmentProviderError names the extra to install."""
    try:
        import google.auth  # noqa: PLC0415 - an optional extra
        import google.auth.aio.credentials  # noqa: PLC0415
        import google.auth.aio.transport.sessions  # noqa: PLC0415
        import google.auth.transport.requests  # noqa: F401, PLC0415 - tokens are fetched with it
    except ImportError as err:
        raise EnvironmentProviderError(_EXTRA) from err


class GoogleSession:
    """A `session.Session` on an endpoint such as https://compute.googleapis.com.

    A plain http endpoint gets no credentials: it is somebody's test server.
    """

    def __init__(self, endpoint: str) -> None:
        """Import the library and do no more. EnvironmentProviderError without it."""
        require_library()
        self._endpoint = endpoint.rstrip("/")
        self._opening = asyncio.Lock()
        self._session: Any = None
        self._missing: str | None = None
        self._look_again_at = 0.0
        self._is_closed = False

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Document | None = None,
    ) -> Reply:
        from google.auth import exceptions  # noqa: PLC0415 - an optional extra

        try:
            session = await self._opened()
            async with asyncio.timeout(TIMEOUT_S):
                return await self._send(session, method, self._url(path, query), body)
        except exceptions.DefaultCredentialsError as err:
            raise EnvironmentProviderError(credentials_fault(err, os.environ)) from err
        except exceptions.RefreshError as err:
            # A metadata server that is away comes as a refresh error that claims to be final.
            if err.retryable or isinstance(err.__cause__, exceptions.TransportError):
                raise TransientProviderError("could not get a token for Compute Engine") from err
            raise EnvironmentProviderError(
                "Google refused a token: the operator's credentials are revoked or wrong"
            ) from err
        except (exceptions.GoogleAuthError, aiohttp.ClientError, OSError) as err:
            # TimeoutError is an OSError.
            raise TransientProviderError("Compute Engine gave no answer") from err

    async def close(self) -> None:
        async with self._opening:
            self._is_closed = True
            if self._session is not None:
                await self._session.close()

    def _url(self, path: str, query: Mapping[str, str]) -> str:
        return f"{self._endpoint}{path}" + (f"?{urlencode(query)}" if query else "")

    async def _opened(self) -> Any:  # noqa: ANN401 - the library has no types
        async with self._opening:
            if self._is_closed:
                raise TransientProviderError("the operator is stopping")
            if self._session is None:
                from google.auth.aio.transport import sessions  # noqa: PLC0415

                self._session = sessions.AsyncAuthorizedSession(await self._credentials())
            return self._session

    async def _credentials(self) -> Any:  # noqa: ANN401 - the library has no types
        import google.auth  # noqa: PLC0415
        from google.auth.aio.credentials import AnonymousCredentials  # noqa: PLC0415
        from google.auth.exceptions import DefaultCredentialsError  # noqa: PLC0415

        if urlsplit(self._endpoint).scheme == "http":
            return cast("Any", AnonymousCredentials)()
        now = asyncio.get_running_loop().time
        if self._missing is not None and now() < self._look_again_at:
            raise EnvironmentProviderError(self._missing)
        try:
            # It reads files and may ask the metadata server.
            credentials, _ = await asyncio.to_thread(google.auth.default, scopes=_SCOPES)
        except (DefaultCredentialsError, *_FILE_ERRORS) as err:
            self._missing = credentials_fault(err, os.environ)
            self._look_again_at = now() + LOOK_AGAIN_S
            raise EnvironmentProviderError(self._missing) from err
        return credentials

    async def _send(
        self,
        session: Any,  # noqa: ANN401 - the library has no types
        method: str,
        url: str,
        body: Document | None,
    ) -> Reply:
        response = await session.request(
            method,
            url,
            data=None if body is None else msgspec.json.encode(body),
            headers={} if body is None else {"Content-Type": "application/json"},
            max_allowed_time=TIMEOUT_S,
            timeout=TIMEOUT_S,
            # The reconcile loop is the retry.
            total_attempts=1,
        )
        return Reply(response.status_code, _document(await response.read()))


def _document(content: bytes) -> Document:
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return cast("Document", value) if isinstance(value, dict) else {}
