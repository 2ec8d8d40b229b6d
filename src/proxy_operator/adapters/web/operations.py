"""The operations of the route table: read the request, ask the service, write the answer.

Each takes a Request and returns a Response, or raises; `dispatch` knows what to make of errors.
"""

from typing import Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET

from proxy_operator.adapters.web import docs
from proxy_operator.adapters.web.errors import STATUS, ApiError, ErrorCode
from proxy_operator.adapters.web.exchange import (
    JSON,
    NO_STORE,
    Request,
    Response,
    content,
    json_answer,
    no_content,
)
from proxy_operator.adapters.web.openapi import openapi_json
from proxy_operator.adapters.web.routes import ATTRIBUTE_PREFIX, MAX_PAGE
from proxy_operator.adapters.web.schemas import (
    AcquireBody,
    HealthBody,
    NoMatchBody,
    RenewBody,
    ReportBody,
    read_body,
)
from proxy_operator.discovery.model import AcquireRequest, InvalidRequestError, ListQuery
from proxy_operator.discovery.service import DiscoveryService
from proxy_operator.domain.lease import NoMatch, ReportResult

_ACQUIRE: Final = msgspec.json.Decoder(AcquireBody)
_REPORT: Final = msgspec.json.Decoder(ReportBody)
_RENEW: Final = msgspec.json.Decoder(RenewBody)
_RESULTS: Final = frozenset(ReportResult)
_BOOLEANS: Final = {"true": True, "false": False}
_SINGLE: Final = ("healthy", "namespace", "limit", "continue")


class Operations:
    """Answers the routes of the discovery API."""

    def __init__(self, service: DiscoveryService) -> None:
        self._service = service

    def health(self, _: Request) -> Response:
        return json_answer(200, HealthBody())

    def list_proxies(self, request: Request) -> Response:
        return json_answer(200, self._service.list_proxies(read_list_query(request.query)))

    def acquire(self, request: Request) -> Response:
        try:
            body = read_body(_ACQUIRE, request.body)
            answer = self._service.acquire(
                AcquireRequest(
                    selector={} if body.selector is UNSET else body.selector,
                    ttl_seconds=None if body.ttl_seconds is UNSET else body.ttl_seconds,
                    target="" if body.target is UNSET else body.target,
                    namespace=None if body.namespace is UNSET else body.namespace,
                )
            )
        except InvalidRequestError:
            self._service.refused()
            raise
        if isinstance(answer, NoMatch):
            return no_match_answer(answer)
        return json_answer(201, answer, NO_STORE)

    def list_leases(self, _: Request) -> Response:
        return json_answer(200, self._service.list_leases(), NO_STORE)

    def release(self, request: Request) -> Response:
        self._service.release(request.params[0])
        return no_content()

    def report(self, request: Request) -> Response:
        try:
            body = read_body(_REPORT, request.body)
        except InvalidRequestError as err:
            if "`result`" in str(err):
                raise _invalid_result() from err
            raise
        if body.result not in _RESULTS:
            raise _invalid_result()
        target = None if body.target is UNSET else body.target
        self._service.report(request.params[0], ReportResult(body.result), target)
        return no_content()

    def renew(self, request: Request) -> Response:
        body = read_body(_RENEW, request.body)
        ttl_seconds = None if body.ttl_seconds is UNSET else body.ttl_seconds
        return json_answer(200, self._service.renew(request.params[0], ttl_seconds), NO_STORE)

    def openapi(self, _: Request) -> Response:
        return content(200, JSON, openapi_json())

    def docs(self, _: Request) -> Response:
        return docs.page()

    def docs_asset(self, request: Request) -> Response:
        return docs.asset(request.params[0])


def no_match_answer(found: NoMatch) -> Response:
    """Build the 409: the counts, and when to ask again if something is due back."""
    body = NoMatchBody(
        error=ErrorCode.NO_MATCH,
        message=_explain(found),
        considered=found.considered,
        unhealthy=found.unhealthy,
        at_capacity=found.at_capacity,
        in_cooldown=found.in_cooldown,
    )
    if found.retry_after_seconds is None:
        return json_answer(STATUS[ErrorCode.NO_MATCH], body)
    after = (b"retry-after", b"%d" % found.retry_after_seconds)
    return json_answer(STATUS[ErrorCode.NO_MATCH], body, after)


def read_list_query(query: str) -> ListQuery:
    """Read the query of a listing; InvalidRequestError names what is unknown or wrong in it."""
    attributes: list[tuple[str, str]] = []
    single: dict[str, str] = {}
    for name, value in _pairs(query):
        if name.startswith(ATTRIBUTE_PREFIX) and len(name) > len(ATTRIBUTE_PREFIX):
            attributes.append((name.removeprefix(ATTRIBUTE_PREFIX), value))
        elif name not in _SINGLE:
            raise InvalidRequestError(f"unknown query parameter `{name}`")
        elif name in single:
            raise InvalidRequestError(f"{name}: given twice")
        else:
            single[name] = value
    return ListQuery(
        attributes=tuple(attributes),
        is_healthy=_read_healthy(single.get("healthy")),
        namespace=_read_namespace(single.get("namespace")),
        limit=_read_limit(single.get("limit")),
        token=single.get("continue"),
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(
            query, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=100
        )
    except ValueError as err:
        raise InvalidRequestError("the query is not a list of name=value, joined by &") from err


def _read_healthy(text: str | None) -> bool | None:
    if text is None:
        return None
    if text not in _BOOLEANS:
        raise InvalidRequestError("healthy: must be true or false")
    return _BOOLEANS[text]


def _read_namespace(text: str | None) -> str | None:
    if text == "":
        raise InvalidRequestError("namespace: is empty; leave it out to list all namespaces")
    return text


def _read_limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_PAGE):
        raise InvalidRequestError(f"limit: must be from 1 to {MAX_PAGE}")
    return int(text)


def _explain(found: NoMatch) -> str:
    if not found.considered:
        return "no proxy matches"
    parts = (
        (found.unhealthy, "unhealthy"),
        (found.at_capacity, "at capacity"),
        (found.in_cooldown, "in cooldown"),
    )
    counts = ", ".join(f"{count} {what}" for count, what in parts if count)
    return f"of {found.considered} matching, none can be leased: {counts}"


def _invalid_result() -> ApiError:
    return ApiError(ErrorCode.INVALID_RESULT, f"result: must be one of {', '.join(ReportResult)}")
