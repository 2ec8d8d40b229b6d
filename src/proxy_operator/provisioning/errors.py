"""Errors of the provider contract: every adapter maps all that its SDK can raise to these."""

from datetime import timedelta


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


class StockOutError(QuotaExceededError):
    """The zone has none left: try the next one."""


class PermanentProviderError(ProviderError):
    """The same request can never succeed: latch until spec or Secret change."""


class EnvironmentProviderError(ProviderError):
    """The operator's surroundings are wrong (extra, engine, rights): show it, retry slowly."""


class TransientProviderError(ProviderError):
    """It may work next time: retry with backoff."""


class FencedError(Exception):
    """The process may no longer lead: the mutation was not sent. Stop working."""
