"""Every error the API gives: code, status, and one way to turn it into an answer.

A message is one sentence for the client. It may name a field, never repeat a secret.
"""

from enum import StrEnum
from typing import Final

from proxy_operator.adapters.web.exchange import Response, json_answer
from proxy_operator.adapters.web.schemas import ErrorBody


class ErrorCode(StrEnum):
    """The codes clients may branch on."""

    INVALID_REQUEST = "invalid_request"
    INVALID_RESULT = "invalid_result"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    UNKNOWN_LEASE = "unknown_lease"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    REQUEST_TIMEOUT = "request_timeout"
    NO_MATCH = "no_match"
    BODY_TOO_LARGE = "body_too_large"
    HEADERS_TOO_LARGE = "headers_too_large"
    INTERNAL = "internal"
    NOT_LEADER = "not_leader"


STATUS: Final = {
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.INVALID_RESULT: 400,
    ErrorCode.UNAUTHORIZED: 401,
    ErrorCode.FORBIDDEN: 403,
    ErrorCode.NOT_FOUND: 404,
    ErrorCode.UNKNOWN_LEASE: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.REQUEST_TIMEOUT: 408,
    ErrorCode.NO_MATCH: 409,
    ErrorCode.BODY_TOO_LARGE: 413,
    ErrorCode.HEADERS_TOO_LARGE: 431,
    ErrorCode.INTERNAL: 500,
    ErrorCode.NOT_LEADER: 503,
}

_LONGEST_MESSAGE: Final = 300


class ApiError(Exception):
    """Ends a request with this answer."""

    def __init__(self, code: ErrorCode, message: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.headers = headers


def error_answer(code: ErrorCode, message: str, *headers: tuple[bytes, bytes]) -> Response:
    """Build the answer of an error; a long message, which can only echo the client, is cut."""
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + "…"
    return json_answer(STATUS[code], ErrorBody(error=code, message=message), *headers)
