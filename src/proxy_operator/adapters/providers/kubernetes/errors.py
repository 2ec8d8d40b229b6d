"""One place that maps what the API server says to the errors of the provider contract."""

import contextlib
import re
from collections.abc import Awaitable, Iterator
from typing import Final, TypeVar

from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    PermanentProviderError,
    ProviderError,
    QuotaExceededError,
    TransientProviderError,
)
from proxy_operator.runtime.errors import ForbiddenError, InvalidError, NotFoundError, ObjectError

T = TypeVar("T")

# The message of the ResourceQuota admission plugin: the status has no reason of its own for it.
_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<requested>\S+), used: \S+,"
    r" limited: (?P<limited>[^\s;]+)"
)
# What the admission plugins ServiceAccount, ResourceQuota and OwnerReferencesPermissionEnforcement
# say of a namespace, a quota or a CRD so new that it has not come to everybody's notice.
_TOO_EARLY: Final = (
    "error looking up service account",
    "status unknown for quota",
    "cannot find RESTMapping",
)


@contextlib.contextmanager
def asking(what: str) -> Iterator[None]:
    """Map errors of a call that must not change anything, or that removes something."""
    try:
        yield
    except ForbiddenError as err:
        raise EnvironmentProviderError(f"the operator may not {what}: {err}") from err
    except ObjectError as err:
        raise _common(what, err) from err


@contextlib.contextmanager
def making(what: str) -> Iterator[None]:
    """Map errors of a call that makes something: here a refusal is about the request."""
    try:
        yield
    except ForbiddenError as err:
        raise _refusal(what, err) from err
    except ObjectError as err:
        raise _common(what, err) from err


async def or_none(call: Awaitable[T]) -> T | None:
    """Return what a call returns; None when there is no such object."""
    try:
        return await call
    except NotFoundError:
        return None


def _refusal(what: str, err: ForbiddenError) -> ProviderError:
    message = str(err)
    found = _QUOTA.search(message)
    if found:
        # Without what is used now: that changes, and the same fault must read the same.
        return QuotaExceededError(
            f"ResourceQuota {found['name']} leaves no room to {what}:"
            f" requested {found['requested']}, limited to {found['limited']}"
        )
    if "exceeded quota" in message:
        return QuotaExceededError(f"a ResourceQuota leaves no room to {what}")
    if any(text in message for text in _TOO_EARLY):
        return TransientProviderError(f"could not {what} yet: {message}")
    return PermanentProviderError(f"the API server refused to {what}: {message}")


def _common(what: str, err: ObjectError) -> ProviderError:
    if isinstance(err, InvalidError):
        return PermanentProviderError(f"the API server refused to {what}: {err}")
    return TransientProviderError(f"could not {what}: {err}")
