"""Errors of the object port. Each class says what the caller does about it."""

from typing import NamedTuple


class FieldError(NamedTuple):
    """One thing wrong with a manifest."""

    field: str
    """Path as kubectl writes it: `spec.endpoint.port`, `spec.gcp.fallbackZones[2]`."""
    value: str
    """The value found, as short JSON; empty when the field is missing."""
    rule: str
    """The rule it breaks, in words: `must be at most 65535`."""

    def __str__(self) -> str:
        found = f" (found {self.value})" if self.value else ""
        return f"{self.field}: {self.rule}{found}"


class ObjectError(Exception):
    """Base of what an `ObjectClient` raises."""


class NotFoundError(ObjectError):
    """No such object: treat it as deleted."""


class AlreadyExistsError(ObjectError):
    """An object of that name exists: read it."""


class ConflictError(ObjectError):
    """The object changed, or is another one of the same name: re-read and decide again."""


class InvalidError(ObjectError):
    """Admission refused the object: tell the user all of it, do not retry."""

    def __init__(self, subject: str, errors: tuple[FieldError, ...]) -> None:
        super().__init__(f"{subject} is invalid: " + "; ".join(str(e) for e in errors))
        self.subject = subject
        self.errors = errors


class ForbiddenError(ObjectError):
    """Not allowed: retry slowly, and say so; somebody must grant it."""


class ExpiredError(ObjectError):
    """The resource version is older than the history kept: list again."""


class UnavailableError(ObjectError):
    """The store cannot answer now: retry with backoff."""
