"""The errors of the API, each as its answers word it."""

from tests.fakes.compute.messages import RefusedError

_RATE = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of the project."


def not_found(path: str) -> RefusedError:
    """Nothing has that name."""
    return RefusedError(404, "notFound", f"The resource '{path}' was not found")


def already_exists(path: str) -> RefusedError:
    """The name is taken, perhaps by an instance that is going."""
    return RefusedError(409, "alreadyExists", f"The resource '{path}' already exists")


def invalid(field: str, why: str) -> RefusedError:
    """A value that can never be right."""
    return RefusedError(400, "invalid", f"Invalid value for field '{field}': {why}")


def quota_exceeded(limit: float = 8) -> RefusedError:
    """The project has as much as it may have."""
    message = f"Quota 'INSTANCES' exceeded. Limit: {limit:.1f} in region europe-west1."
    return RefusedError(403, "quotaExceeded", message)


def rate_limited(*, is_user: bool = False, status: int = 403) -> RefusedError:
    """Too many calls. Its ErrorInfo speaks of a quota, and means none of instances."""
    reason = "userRateLimitExceeded" if is_user else "rateLimitExceeded"
    return RefusedError(status, reason, _RATE, error_info="CONCURRENT_OPERATIONS_QUOTA_EXCEEDED")


def forbidden(permission: str = "compute.instances.create") -> RefusedError:
    """The caller has no right to do this."""
    message = f"Required '{permission}' permission for this project"
    return RefusedError(403, "forbidden", message, error_info="IAM_PERMISSION_DENIED")


def unauthorized() -> RefusedError:
    """The token is missing, unknown or over."""
    message = "Request had invalid authentication credentials."
    return RefusedError(401, "authError", message, error_info="ACCESS_TOKEN_EXPIRED")


def unavailable(status: int = 503) -> RefusedError:
    """The API has a bad moment."""
    return RefusedError(status, "backendError", "The service is currently unavailable.")


def not_ready(path: str) -> RefusedError:
    """Something else is still being done with it."""
    return RefusedError(400, "resourceNotReady", f"The resource '{path}' is not ready")


def pool_exhausted(zone: str = "", reason: str = "ZONE_RESOURCE_POOL_EXHAUSTED") -> RefusedError:
    """The zone has no room, said at once and not by the operation."""
    message = f"The zone '{zone}' does not have enough resources available to fulfill the request."
    return RefusedError(503, reason, message, error_info=reason)
