"""What goes over the wire, whichever way it is carried."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec


@dataclass(frozen=True)
class Request:
    """One call. `path` is decoded and begins with a slash; header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """What a client gets."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"content-type": "application/json; charset=UTF-8"}
    )

    def json(self) -> Any:
        """Return the decoded body."""
        return msgspec.json.decode(self.body)


def answer_of(document: Mapping[str, Any], status: int = 200) -> Answer:
    """Return an answer that carries a document."""
    return Answer(status, msgspec.json.encode(document))


class ReplyLostError(ConnectionResetError):
    """The connection broke before an answer came. Whether the deed was done is not known."""


class RefusedError(Exception):
    """The API says no: a status, and the reason a client decides by."""

    def __init__(
        self, status: int, reason: str, message: str, *, error_info: str | None = None
    ) -> None:
        """`error_info` is the reason of an ErrorInfo in the details; often not the same one."""
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.error_info = error_info

    def answer(self) -> Answer:
        """Return the error as the API words it."""
        error: dict[str, Any] = {
            "code": self.status,
            "message": self.message,
            "errors": [{"message": self.message, "domain": "global", "reason": self.reason}],
        }
        if self.error_info is not None:
            info = {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": self.error_info,
                "domain": "compute.googleapis.com",
            }
            error["details"] = [info]
        return answer_of({"error": error}, self.status)
