"""From a request to its answer: token, route, operation, error.

Synchronous, so what an operation decides and changes is one step of the loop. Never raises: what
an operation did not foresee is logged and answered with 500.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from proxy_operator.adapters.web.access_log import AccessLog
from proxy_operator.adapters.web.auth import Guard
from proxy_operator.adapters.web.errors import ApiError, ErrorCode, error_answer
from proxy_operator.adapters.web.exchange import Headers, Request, Response
from proxy_operator.adapters.web.operations import Operations
from proxy_operator.adapters.web.routes import ROUTES, Route
from proxy_operator.discovery.model import InvalidRequestError, UnknownLeaseError
from proxy_operator.discovery.service import DiscoveryService

logger = logging.getLogger(__name__)

Operation = Callable[[Request], Response]

BODY_LIMIT: Final = 64 * 1024
_VARIABLE: Final = "{"


class _Resource:
    """The routes of one path, by method; HEAD is answered as GET."""

    def __init__(self) -> None:
        self.methods: dict[str, Route] = {}
        self.is_public = False

    def add(self, route: Route) -> None:
        self.methods[route.method] = route
        if route.method == "GET":
            self.methods["HEAD"] = route
        self.is_public = self.is_public or route.is_public

    def refusal(self) -> ApiError:
        """Build the error for a method that is not here."""
        if not self.methods:
            return ApiError(ErrorCode.NOT_FOUND, "no such path; see /docs")
        allow = ", ".join(sorted(self.methods))
        return ApiError(
            ErrorCode.METHOD_NOT_ALLOWED,
            f"this path answers {allow}",
            (b"allow", allow.encode()),
        )


_NOWHERE: Final = _Resource()


class Dispatcher:
    """Serves a route table."""

    def __init__(
        self,
        routes: Sequence[Route],
        operations: Mapping[str, Operation],
        guard: Guard,
        is_leader: Callable[[], bool],
    ) -> None:
        self._operations = operations
        self._guard = guard
        self._is_leader = is_leader
        self._log = AccessLog()
        self._exact: dict[str, _Resource] = {}
        self._patterns: list[tuple[list[str], _Resource]] = []
        for route in routes:
            self._add(route)

    def refuse(self, method: str, path: str, headers: Headers) -> Response | None:
        """Answer a request whose body is not worth reading; None to have it read."""
        try:
            self._admit(method, path, headers)
            _check_length(headers)
        except ApiError as err:
            return self._refused(err, method)
        return None

    def dispatch(
        self, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> Response:
        """Answer a request. The body may be cut once it is longer than BODY_LIMIT."""
        started = time.perf_counter()
        route: Route | None = None
        try:
            route, params = self._admit(method, path, headers)
            _check_body(body)
            if query and not route.parameters:
                _refuse_query(query)
            request = Request(method, path, query, headers, body, params)
            response = self._operations[route.operation](request)
        except Exception as err:  # noqa: BLE001 - the last resort: every request gets an answer
            response = _answer_of(err, route)
        self._log.served(method, route, response.status, time.perf_counter() - started)
        return response

    def _add(self, route: Route) -> None:
        segments = route.path.split("/")
        if _VARIABLE not in route.path:
            resource = self._exact.setdefault(route.path, _Resource())
        else:
            known = [r for pattern, r in self._patterns if pattern == segments]
            resource = known[0] if known else _Resource()
            if not known:
                self._patterns.append((segments, resource))
        resource.add(route)

    def _admit(self, method: str, path: str, headers: Headers) -> tuple[Route, tuple[str, ...]]:
        resource, params = self._find(path)
        if not resource.is_public:
            self._guard.check(headers)
        route = resource.methods.get(method)
        if route is None:
            raise resource.refusal()
        if route.needs_leader and not self._is_leader():
            raise ApiError(
                ErrorCode.NOT_LEADER, "this replica does not hold the leases; ask the leader"
            )
        return route, _decoded(params) if "%" in path else tuple(params)

    def _find(self, path: str) -> tuple[_Resource, list[str]]:
        exact = self._exact.get(path)
        if exact is not None:
            return exact, []
        segments = path.split("/")
        for pattern, resource in self._patterns:
            if len(pattern) == len(segments):
                params = _match(pattern, segments)
                if params is not None:
                    return resource, params
        return _NOWHERE, []

    def _refused(self, err: ApiError, method: str) -> Response:
        response = error_answer(err.code, err.message, *err.headers)
        self._log.served(method, None, response.status, 0.0)
        return response


def discovery_endpoint(
    service: DiscoveryService, guard: Guard, is_leader: Callable[[], bool]
) -> Dispatcher:
    """Build the discovery API: every route answered by the operation that it names."""
    operations = Operations(service)
    by_name = {route.operation: getattr(operations, route.operation) for route in ROUTES}
    return Dispatcher(ROUTES, by_name, guard, is_leader)


def _match(pattern: list[str], segments: list[str]) -> list[str] | None:
    params: list[str] = []
    for wanted, found in zip(pattern, segments, strict=True):
        if wanted == found:
            continue
        if not found or not wanted.startswith(_VARIABLE):
            return None
        params.append(found)
    return params


def _decoded(params: list[str]) -> tuple[str, ...]:
    try:
        return tuple(unquote_to_bytes(p).decode() for p in params)
    except UnicodeDecodeError as err:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the path is not UTF-8 once decoded") from err


def _check_length(headers: Headers) -> None:
    for name, value in headers:
        if name == b"content-length" and (len(value) > 18 or int(value) > BODY_LIMIT):
            raise _too_large()


def _check_body(body: bytes) -> None:
    if len(body) > BODY_LIMIT:
        raise _too_large()


def _too_large() -> ApiError:
    return ApiError(ErrorCode.BODY_TOO_LARGE, f"the body is longer than {BODY_LIMIT} bytes")


def _refuse_query(query: str) -> None:
    name = query.partition("&")[0].partition("=")[0]
    raise ApiError(ErrorCode.INVALID_REQUEST, f"unknown query parameter `{name}`")


def _answer_of(err: Exception, route: Route | None) -> Response:
    if isinstance(err, ApiError):
        return error_answer(err.code, err.message, *err.headers)
    if isinstance(err, InvalidRequestError):
        return error_answer(ErrorCode.INVALID_REQUEST, str(err))
    if isinstance(err, UnknownLeaseError):
        return error_answer(ErrorCode.UNKNOWN_LEASE, "no such lease; it may have ended long ago")
    operation = route.operation if route else None
    logger.error("a request failed", exc_info=err, extra={"operation": operation})
    return error_answer(ErrorCode.INTERNAL, "the operator failed to answer; its log says why")
