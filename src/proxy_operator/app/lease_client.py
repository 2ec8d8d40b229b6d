"""A client of the discovery API for the commands `lease`, `release` and `report`.

It speaks to the API directly, whatever HTTP_PROXY says, and never follows a redirect: the token
goes to the address that was given and nowhere else.
"""

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from proxy_operator.app.values import parse_token

_TIMEOUT_SECONDS: Final = 30.0
_MOST_BYTES: Final = 1 << 20
_LONGEST_QUOTED: Final = 500
_PROXY_TEXTS: Final = ("url", "namespace", "name")


class ApiError(Exception):
    """The API refused or cannot be reached. The message is one sentence."""


@dataclass(frozen=True, kw_only=True)
class Api:
    """Where the API is, and the token for it."""

    url: str
    token: str | None = field(repr=False)


def read_token(file: Path | None, token: str | None) -> str | None:
    """Return the token of the file, else the other one. ApiError."""
    if file is None:
        return token
    try:
        return parse_token(file.read_text().strip()) or None
    except OSError as err:
        raise ApiError(f"token file {file}: {(err.strerror or str(err)).lower()}") from err
    except ValueError as err:
        raise ApiError(f"token file {file}: a token consists of visible ASCII characters") from err


def lease(api: Api, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for a lease and return the API's answer, its texts in place. ApiError."""
    answer = _call(api, "POST", "/v1/leases", wanted)
    proxy = answer.get("proxy")
    texts = [answer.get(name) for name in ("leaseID", "expiresAt")]
    texts += [proxy.get(name) if isinstance(proxy, dict) else None for name in _PROXY_TEXTS]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        raise ApiError(f"{api.url} answered something else than a lease and is no discovery API")
    return answer


def release(api: Api, lease_id: str) -> None:
    """End a lease; an unknown one is no error. ApiError."""
    _call(api, "DELETE", f"/v1/leases/{quote(lease_id, safe='')}")


def report(api: Api, lease_id: str, result: str, target: str | None) -> None:
    """Say how a leased proxy did. ApiError."""
    body = {"result": result} if target is None else {"result": result, "target": target}
    _call(api, "POST", f"/v1/leases/{quote(lease_id, safe='')}/report", body)


def _call(
    api: Api, method: str, path: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    parts = urlsplit(api.url)
    headers = {"Accept": "application/json"}
    if api.token:
        headers["Authorization"] = f"Bearer {api.token}"
    content = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        content = json.dumps(body).encode()
    connection = _connection(parts.scheme, parts.hostname or "", parts.port)
    try:
        connection.request(method, parts.path.rstrip("/") + path, content, headers)
        response = connection.getresponse()
        raw = response.read(_MOST_BYTES)
    except http.client.HTTPException as err:
        # Its text is what the other side sent.
        raise ApiError(f"{api.url} does not answer in HTTP and is not a discovery API") from err
    except (OSError, UnicodeError) as err:
        reason = (getattr(err, "strerror", None) or str(err) or type(err).__name__).lower()
        raise ApiError(
            f"no answer from the discovery API at {api.url}: {reason}"
            " (is the operator running there? see --api)"
        ) from err
    finally:
        connection.close()
    return _answer(api, response, raw)


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=_TIMEOUT_SECONDS, context=context)
    return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_SECONDS)


def _answer(api: Api, response: http.client.HTTPResponse, raw: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        answer = None
    is_error = response.status >= 300
    if not isinstance(answer, dict) or (is_error and not isinstance(answer.get("error"), str)):
        raise ApiError(f"{api.url} answered {response.status} and is not a discovery API")
    if not is_error:
        return answer
    if response.status == 401:
        raise ApiError(
            "the discovery API refused the token: set DISCOVERY_TOKEN or --token-file"
            if api.token
            else "the discovery API wants a token: set DISCOVERY_TOKEN or --token-file"
        )
    if answer["error"] == "no_match":
        raise ApiError(_no_match(answer, response.headers.get("Retry-After")))
    said = str(answer.get("message") or answer["error"])[:_LONGEST_QUOTED]
    raise ApiError(f"{said} ({answer['error'][:_LONGEST_QUOTED]})")


def _no_match(answer: Mapping[str, Any], retry_after: str | None) -> str:
    considered = answer.get("considered")
    if not isinstance(considered, int) or considered < 1:
        return "no proxy matches (no_match)"
    counts = ", ".join(
        f"{answer.get(name)} {words}"
        for name, words in (
            ("unhealthy", "unhealthy"),
            ("atCapacity", "at capacity"),
            ("inCooldown", "in cooldown"),
        )
    )
    is_due = retry_after is not None and retry_after.isdecimal()
    due = f"; the next is due back in {retry_after}s" if is_due else ""
    return f"none of {considered} matching proxies is free: {counts}{due} (no_match)"
