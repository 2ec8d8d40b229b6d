"""What a kube-apiserver answers when it refuses, as errors of the object port.

One table of HTTP statuses and one reader of `metav1.Status`; nobody else looks at a status code.
https://kubernetes.io/docs/reference/using-api/api-concepts/ and apimachinery's `meta/v1` types.
"""

import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

import msgspec

from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    FieldError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ObjectError,
    UnavailableError,
)

_MESSAGE_LIMIT: Final = 1000


class Cause(msgspec.Struct, frozen=True):
    """One fault of an invalid object."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a Status says beside its sentence."""

    kind: str = ""
    name: str = ""
    causes: list[Cause] = []
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """`metav1.Status`, the body of every refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


_status: Final = msgspec.json.Decoder(Status)


def read_status(code: int, body: bytes) -> Status:
    """Read the body of a refusal; whatever is no Status becomes one with that code."""
    try:
        status = _status.decode(body)
    except msgspec.MsgspecError:
        text = body[:_MESSAGE_LIMIT].decode(errors="replace").strip()
        return Status(code=code, message=text or _phrase(code))
    if status.code and status.message:
        return status
    return msgspec.structs.replace(
        status, code=status.code or code, message=status.message or _phrase(code)
    )


def error_of(status: Status, subject: str) -> ObjectError:
    """Return the error of the port for a refusal; `subject` is what the request was about."""
    make = _BY_CODE.get(status.code)
    if make is not None:
        return make(status, subject)
    code = status.code
    return UnavailableError(f"the API server answered {code} about {subject}: {_said(status)}")


def _conflict(status: Status, subject: str) -> ObjectError:
    if status.reason == "AlreadyExists":
        return AlreadyExistsError(f"{subject} already exists")
    return ConflictError(f"{subject}: {_said(status)}")


def _invalid(status: Status, subject: str) -> ObjectError:
    faults = tuple(dict.fromkeys(_faults(status)))
    if {fault.field for fault in faults} == {"metadata.uid"}:
        # A patch that names the uid of a predecessor is told that it may not change the uid.
        return ConflictError(f"{subject} is another object now: its uid is not {faults[0].value}")
    return InvalidError(subject, faults)


def _forbidden(status: Status, subject: str) -> ObjectError:
    return ForbiddenError(f"the API server forbids {subject}: {_said(status)}")


def _unauthorized(status: Status, subject: str) -> ObjectError:
    return ForbiddenError(
        f"the API server does not accept our credentials for {subject}: {_said(status)}"
    )


def _expired(status: Status, subject: str) -> ObjectError:
    return ExpiredError(f"{subject}: {_said(status)}")


def _missing(status: Status, subject: str) -> ObjectError:
    return NotFoundError(f"{subject} not found: {_said(status)}")


_BY_CODE: Final[dict[int, Callable[[Status, str], ObjectError]]] = {
    HTTPStatus.BAD_REQUEST: _invalid,
    HTTPStatus.UNAUTHORIZED: _unauthorized,
    HTTPStatus.FORBIDDEN: _forbidden,
    HTTPStatus.NOT_FOUND: _missing,
    HTTPStatus.CONFLICT: _conflict,
    HTTPStatus.GONE: _expired,
    HTTPStatus.UNPROCESSABLE_ENTITY: _invalid,
}

# Strict decoding answers 400 with a sentence and no causes.
_UNKNOWN_FIELD: Final = re.compile(r'(unknown|duplicate) field "([^"]+)"')
_FOUND: Final = re.compile(r'^Invalid value: ("(?:[^"\\]|\\.)*"|\S+): (.*)$', re.DOTALL)
# The server shows whole values by their type; that tells nobody anything.
_OPAQUE: Final = frozenset({'"object"', '"array"'})


def _faults(status: Status) -> Iterator[FieldError]:
    causes = status.details.causes if status.details else []
    # The server adds a cause without a field when it could not evaluate the rules.
    named = [cause for cause in causes if cause.field not in {"", "<nil>"}] or causes
    if named:
        yield from map(_fault, named)
        return
    unknown = _UNKNOWN_FIELD.findall(status.message)
    for word, field in unknown:
        yield FieldError(field, "", f"{word} field")
    if not unknown:
        yield FieldError("", "", _said(status))


def _fault(cause: Cause) -> FieldError:
    message = cause.message[:_MESSAGE_LIMIT]
    match = _FOUND.match(message)
    if match is None:
        return FieldError(cause.field, "", message)
    value, rule = match.groups()
    return FieldError(cause.field, "" if value in _OPAQUE else value, rule)


def _said(status: Status) -> str:
    return status.message[:_MESSAGE_LIMIT]


def _phrase(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "no explanation"
