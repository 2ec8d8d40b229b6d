"""Every row of the error table, over HTTP and out of an operation."""

import pytest

from proxy_operator.adapters.providers.gcp.errors import (
    Call,
    InvalidPathError,
    NameTakenError,
    error_of,
    error_of_operation,
)
from proxy_operator.adapters.providers.gcp.session import Reply
from proxy_operator.provisioning.errors import (
    EnvironmentProviderError,
    InstanceNotFoundError,
    PermanentProviderError,
    QuotaExceededError,
    StockOutError,
    TransientProviderError,
)
from tests.unit.adapters.providers.gcp.scripted import operation, refusal

TRANSIENT, PERMANENT, QUOTA = TransientProviderError, PermanentProviderError, QuotaExceededError
STOCK_OUT, ENVIRONMENT = StockOutError, EnvironmentProviderError


@pytest.mark.parametrize(
    ("call", "reply", "kind"),
    [
        (Call.INSERT, refusal(409, "alreadyExists"), NameTakenError),
        (Call.INSERT, refusal(409, "conflict"), TRANSIENT),
        (Call.DELETE, refusal(409, "conflict"), TRANSIENT),
        (Call.GET, refusal(404, "notFound"), InstanceNotFoundError),
        (Call.DELETE, refusal(404, "notFound"), InstanceNotFoundError),
        (Call.GET, refusal(404), InstanceNotFoundError),
        (Call.INSERT, refusal(404, "notFound"), PERMANENT),
        (Call.LIST, refusal(404, "notFound"), ENVIRONMENT),
        (Call.INSERT, refusal(400, "invalid"), PERMANENT),
        (Call.INSERT, refusal(400, "required"), PERMANENT),
        (Call.INSERT, refusal(400, "resourceNotReady"), TRANSIENT),
        (Call.DELETE, refusal(400, "resourceNotReady"), TRANSIENT),
        (Call.DELETE, refusal(400, "invalid"), ENVIRONMENT),
        (Call.INSERT, refusal(401, "authError"), ENVIRONMENT),
        (Call.GET, refusal(401, "authError"), ENVIRONMENT),
        (Call.INSERT, refusal(412, "conditionNotMet"), PERMANENT),
        (Call.INSERT, refusal(403, "quotaExceeded"), QUOTA),
        (Call.INSERT, refusal(413, "quotaExceeded"), QUOTA),
        (Call.INSERT, refusal(413), QUOTA),
        (Call.INSERT, refusal(429, "quotaExceeded"), QUOTA),
        (Call.INSERT, refusal(403, info="QUOTA_EXCEEDED"), QUOTA),
        (Call.INSERT, refusal(403, "rateLimitExceeded"), TRANSIENT),
        (Call.INSERT, refusal(403, "userRateLimitExceeded"), TRANSIENT),
        (
            Call.INSERT,
            refusal(403, "rateLimitExceeded", info="CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"),
            TRANSIENT,
        ),
        (Call.INSERT, refusal(403, info="CONCURRENT_OPERATIONS_QUOTA_EXCEEDED"), TRANSIENT),
        (Call.LIST, refusal(403, info="RATE_LIMIT_EXCEEDED"), TRANSIENT),
        (Call.INSERT, refusal(429), TRANSIENT),
        (Call.INSERT, refusal(403, "forbidden"), ENVIRONMENT),
        (Call.GET, refusal(403, "forbidden"), ENVIRONMENT),
        (Call.GET, refusal(400, "invalid"), InvalidPathError),
        (Call.LIST, refusal(403, "accessNotConfigured"), ENVIRONMENT),
        (Call.INSERT, refusal(503, "backendError"), TRANSIENT),
        (Call.INSERT, refusal(503, "ZONE_RESOURCE_POOL_EXHAUSTED"), STOCK_OUT),
        (Call.INSERT, refusal(503, info="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"), STOCK_OUT),
        (Call.INSERT, refusal(503, "insufficientCapacity"), STOCK_OUT),
        (Call.INSERT, refusal(418, "unheardOf"), PERMANENT),
        *((Call.GET, refusal(status), TRANSIENT) for status in (408, 500, 502, 503, 504)),
        (Call.GET, refusal(302), TRANSIENT),
    ],
)
def test_an_answer_comes_to_an_error(call, reply, kind):
    assert type(error_of(call, "do it", reply)) is kind


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_an_answer_that_is_not_the_api_s_proves_nothing(status):
    assert type(error_of(Call.GET, "read it", Reply(status, {}))) is TransientProviderError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("QUOTA_EXCEEDED", QUOTA),
        ("ZONE_RESOURCE_POOL_EXHAUSTED", STOCK_OUT),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", STOCK_OUT),
        ("IP_SPACE_EXHAUSTED", STOCK_OUT),
        ("IP_SPACE_EXHAUSTED_WITH_DETAILS", STOCK_OUT),
        ("INVALID_FIELD_VALUE", PERMANENT),
        ("INVALID_USAGE", PERMANENT),
        ("RESOURCE_NOT_FOUND", PERMANENT),
        ("PERMISSIONS_ERROR", PERMANENT),
        ("RESOURCE_ALREADY_EXISTS", NameTakenError),
        ("INTERNAL_ERROR", TRANSIENT),
        ("RESOURCE_NOT_READY", TRANSIENT),
        ("SOMETHING_NEW", TRANSIENT),
    ],
)
def test_an_operation_s_error_comes_to_an_error(code, kind):
    found = error_of_operation(Call.INSERT, "make it", operation(code).body)
    assert type(found) is kind


@pytest.mark.parametrize("status", ["PENDING", "RUNNING", "DONE"])
def test_an_operation_without_errors_is_no_error(status):
    assert error_of_operation(Call.INSERT, "make it", operation(status=status).body) is None


def test_the_first_error_decides():
    found = error_of_operation(
        Call.INSERT, "make it", operation("ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED").body
    )
    assert type(found) is StockOutError


def test_the_same_fault_reads_the_same():
    def message(operation_id: str, at: str) -> str:
        text = f"Operation {operation_id} of\n 0a1b2c3d-0000-4000-8000-0123456789ab failed at {at}."
        return str(error_of(Call.INSERT, "make it", refusal(400, "invalid", message=text)))

    first = message("operation-17-ab", "2026-01-01T00:00:00Z")
    assert first == message("operation-18-cd", "2026-01-02T00:00:00Z")
    assert first.startswith("could not make it: HTTP 400 invalid: Operation … of … failed at")


def test_what_may_pass_says_no_more_than_its_reason():
    found = error_of(Call.GET, "read it", refusal(503, "backendError", message="try id 17"))
    assert str(found) == "could not read it: HTTP 503 backendError"
