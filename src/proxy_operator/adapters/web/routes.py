"""The route table of the discovery API: what `dispatch` serves and `openapi` documents.

A path has literal segments and `{variables}`; a route names the operation that answers it, which
is a method of `operations.Operations`.
"""

from typing import Any, Final, NamedTuple

from proxy_operator.adapters.web.errors import ErrorCode
from proxy_operator.adapters.web.schemas import (
    AcquireBody,
    ErrorBody,
    HealthBody,
    NoMatchBody,
    RenewBody,
    ReportBody,
)
from proxy_operator.discovery.model import Grant, LeasePage, LeaseRow, ProxyPage

MAX_PAGE: Final = 1000


class Answer(NamedTuple):
    """One way a request can end."""

    status: int
    description: str
    body: type | None = None
    headers: tuple[str, ...] = ()


class QueryParameter(NamedTuple):
    """One query parameter; `attr.*` stands for every name with that prefix."""

    name: str
    description: str
    schema: dict[str, Any]


class Route(NamedTuple):
    """One method on one path."""

    method: str
    path: str
    operation: str
    summary: str = ""
    """Empty: left out of the OpenAPI document."""
    is_public: bool = False
    """Served without a token."""
    needs_leader: bool = False
    parameters: tuple[QueryParameter, ...] = ()
    body: type | None = None
    answers: tuple[Answer, ...] = ()
    errors: tuple[ErrorCode, ...] = ()
    """Beside those that every route can give."""


ATTRIBUTE_PREFIX: Final = "attr."
_TEXT: Final = {"type": "string"}
_UNKNOWN: Final = (ErrorCode.UNKNOWN_LEASE,)

ROUTES: Final = (
    Route(
        "GET",
        "/healthz",
        "health",
        "Tell whether the API answers",
        is_public=True,
        answers=(Answer(200, "It does.", HealthBody),),
    ),
    Route(
        "GET",
        "/v1/proxies",
        "list_proxies",
        "List the fleet, without credentials",
        parameters=(
            QueryParameter(
                "attr.*",
                "Only proxies with this attribute: `attr.region=eu`; repeat to ask for several.",
                _TEXT,
            ),
            QueryParameter("healthy", "Only healthy ones, or only others.", {"type": "boolean"}),
            QueryParameter("namespace", "Only proxies of this namespace.", _TEXT),
            QueryParameter(
                "limit",
                "At most so many in this answer; all when absent.",
                {"type": "integer", "minimum": 1, "maximum": MAX_PAGE},
            ),
            QueryParameter("continue", "The `continue` of the page before.", _TEXT),
        ),
        answers=(Answer(200, "The proxies, in order of namespace and name.", ProxyPage),),
        errors=(ErrorCode.INVALID_REQUEST,),
    ),
    Route(
        "POST",
        "/v1/leases",
        "acquire",
        "Lease the best healthy proxy",
        needs_leader=True,
        body=AcquireBody,
        answers=(
            Answer(201, "The lease, and all that is needed to use its proxy.", Grant),
            Answer(409, "No proxy can be leased now.", NoMatchBody, ("Retry-After",)),
        ),
        errors=(ErrorCode.INVALID_REQUEST, ErrorCode.BODY_TOO_LARGE),
    ),
    Route(
        "GET",
        "/v1/leases",
        "list_leases",
        "List the active leases, without credentials",
        needs_leader=True,
        answers=(Answer(200, "The leases, soonest to expire first.", LeasePage),),
    ),
    Route(
        "DELETE",
        "/v1/leases/{id}",
        "release",
        "End a lease",
        needs_leader=True,
        answers=(Answer(204, "The lease has ended, or there was none."),),
    ),
    Route(
        "POST",
        "/v1/leases/{id}/report",
        "report",
        "Say how the use of a proxy went",
        needs_leader=True,
        body=ReportBody,
        answers=(Answer(204, "Noted; in force before the next answer."),),
        errors=(
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_RESULT,
            *_UNKNOWN,
            ErrorCode.BODY_TOO_LARGE,
        ),
    ),
    Route(
        "POST",
        "/v1/leases/{id}/renew",
        "renew",
        "Let a lease end later",
        needs_leader=True,
        body=RenewBody,
        answers=(Answer(200, "The lease with its new end.", LeaseRow),),
        errors=(ErrorCode.INVALID_REQUEST, *_UNKNOWN, ErrorCode.BODY_TOO_LARGE),
    ),
    Route("GET", "/openapi.json", "openapi", is_public=True),
    Route("GET", "/docs", "docs", is_public=True),
    Route("GET", "/docs/{asset}", "docs_asset", is_public=True),
)

ERROR_BODY: Final = ErrorBody
