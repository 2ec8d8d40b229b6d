"""Errors of the provider contract: every adapter maps all that its SDK can raise to these."""

from datetime import timedelta
from enum import StrEnum


class ProviderError(Exception):
    """Base. The message is one sentence for people, free of request ids and times."""


class InstanceNotFoundError(ProviderError):
    """No such instance: it has gone, or is not visible yet."""


class QuotaExceededError(ProviderError):
    """A limit was reached: wait for quota-retry, then ask again. Never a failure."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        """`retry_after` stands in for quota-retry when it is known how long to wait."""
        super().__init__(message)
        self.retry_after = retry_after


class OwnLimit(StrEnum):
    """What the operator's user may limit, by the name of the option."""

    MAX_INSTANCES = "max_instances"
    MAX_CREATES_PER_MINUTE = "max_creates_per_minute"


class OwnLimitError(QuotaExceededError):
    """The operator's own limit was reached: the provider was not asked."""

    def __init__(
        self, limit: OwnLimit, value: int | None, *, retry_after: timedelta | None = None
    ) -> None:
        """`value` is what the option says."""
        option = limit.replace("_", "-")
        super().__init__(
            f"the operator's own limit --{option}={value} is reached", retry_after=retry_after
        )
        self.limit = limit


class StockOutError(QuotaExceededError):
    """The zone has none left: try the next one."""


class PermanentProviderError(ProviderError):
    """The same request can never succeed: latch until spec or Secret change."""


class EnvironmentProviderError(ProviderError):
    """The operator's surroundings are wrong (extra, engine, rights): show it, retry slowly."""


class NotConfiguredError(EnvironmentProviderError):
    """The settings do not ask for this provider."""


class TransientProviderError(ProviderError):
    """It may work next time: retry with backoff."""


class FencedError(Exception):
    """The process may no longer lead: the mutation was not sent. Stop working."""
