"""What the API says, as errors of the provider contract: one table, first match wins.

The rule: the reason of the first error decides, then the ErrorInfo, then the HTTP status; a word
is compared whole, because a rate limit calls itself CONCURRENT_OPERATIONS_QUOTA_EXCEEDED.
Sources: Compute Engine "Troubleshooting API errors", "Resource availability errors", and the
Operation and ErrorInfo messages of compute/v1.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final, NamedTuple

from proxy_operator.adapters.providers.gcp.session import Document, Reply
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)

_LONGEST: Final = 300


class Call(StrEnum):
    """What was asked for."""

    INSERT = "insert"
    GET = "get"
    DELETE = "delete"
    LIST = "list"


class NameTakenError(TransientProviderError):
    """An instance of that name exists; whose it is has to be looked at."""


class InvalidPathError(EnvironmentProviderError):
    """What was asked for by name cannot exist: its zone, or the project, is none."""


class Row(NamedTuple):
    """One line of the table."""

    word: str
    """A pattern for a whole reason or code."""
    kind: type[ProviderError]


WORDS: Final = (
    Row(r"(ZONE_RESOURCE_POOL|IP_SPACE)_EXHAUSTED.*|insufficientCapacity", StockOutError),
    Row(r"rateLimitExceeded|userRateLimitExceeded", TransientProviderError),
    Row(r"RATE_LIMIT_EXCEEDED|CONCURRENT_OPERATIONS_QUOTA_EXCEEDED", TransientProviderError),
    Row(r"quotaExceeded|QUOTA_EXCEEDED", QuotaExceededError),
    Row(r"alreadyExists|RESOURCE_ALREADY_EXISTS", NameTakenError),
    Row(r"resourceNotReady|RESOURCE_NOT_READY", TransientProviderError),
    Row(r"INVALID.*|RESOURCE_NOT_FOUND|PERMISSIONS_ERROR", PermanentProviderError),
)
"""By reason of an error, ErrorInfo reason or code of an operation's error."""

STATUSES: Final[dict[int, type[ProviderError]]] = {
    400: PermanentProviderError,
    401: EnvironmentProviderError,  # the session has refreshed the token and tried again
    403: EnvironmentProviderError,  # rights come back without an edit of the spec
    404: PermanentProviderError,
    408: TransientProviderError,
    409: TransientProviderError,
    412: PermanentProviderError,
    413: QuotaExceededError,
    429: TransientProviderError,
}
"""By HTTP status, where no word decided. Others: 4xx are permanent, the rest may pass."""


def error_of(call: Call, what: str, reply: Reply) -> ProviderError:
    """Return what an answer other than 2xx comes to. `what` completes "could not …"."""
    error = reply.body.get("error")
    if not isinstance(error, dict):
        # Not an answer of the API: a gateway's "not found" is no proof that an instance is gone.
        return TransientProviderError(f"could not {what}: HTTP {reply.status} without a reason")
    words = list(_words_of(error))
    if reply.status == 404 and call in {Call.GET, Call.DELETE}:
        return InstanceNotFoundError(f"could not {what}: there is none")
    kind = _kind_of_words(words) or _kind_of_status(reply.status)
    if kind is PermanentProviderError and call is not Call.INSERT:
        is_path = call is Call.GET and reply.status == 400
        kind = InvalidPathError if is_path else EnvironmentProviderError
    return kind(_sentence(what, kind, [f"HTTP {reply.status}", *words[:1]], error.get("message")))


def error_of_operation(call: Call, what: str, operation: Document) -> ProviderError | None:
    """Return why an operation failed, or None when it has not (yet)."""
    errors = (operation.get("error") or {}).get("errors")
    if not errors:
        return None
    words = [*_strings(errors[0].get("code")), *_info_reasons(errors[0].get("errorDetails"))]
    kind = _kind_of_words(words) or TransientProviderError
    if kind is PermanentProviderError and call is not Call.INSERT:
        kind = EnvironmentProviderError
    return kind(_sentence(what, kind, words[:1], errors[0].get("message")))


def _words_of(error: Document) -> Iterable[str]:
    for one in error.get("errors") or ():
        yield from _strings(one.get("reason"))
        break
    yield from _info_reasons(error.get("details"))


def _info_reasons(details: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    """Yield the reasons of ErrorInfo entries, as errors and as operations carry them."""
    for detail in details or ():
        yield from _strings(detail.get("errorInfo", detail).get("reason"))


def _strings(value: Any) -> Iterable[str]:  # noqa: ANN401 - any JSON value
    return [value] if isinstance(value, str) and value else []


def _kind_of_words(words: Iterable[str]) -> type[ProviderError] | None:
    for word in words:
        for row in WORDS:
            if re.fullmatch(row.word, word):
                return row.kind
    return None


def _kind_of_status(status: int) -> type[ProviderError]:
    if status in STATUSES:
        return STATUSES[status]
    return PermanentProviderError if 400 <= status < 500 else TransientProviderError


# What is new in every message although the fault is the same.
_CHANGING: Final = re.compile(
    r"\boperation-[-\w]+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\d{4}-\d\d-\d\dT\S+"
)


def _sentence(
    what: str,
    kind: type[ProviderError],
    words: list[str],
    message: Any,  # noqa: ANN401 - any JSON value
) -> str:
    reason = " ".join(words)
    if issubclass(kind, TransientProviderError) or not isinstance(message, str) or not message:
        return f"could not {what}: {reason}"
    text = " ".join(_CHANGING.sub("…", message).split())
    return f"could not {what}: {reason}: {text}"[:_LONGEST]
