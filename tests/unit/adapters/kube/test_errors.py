"""Refusals of an API server as errors of the port."""

import json
from typing import Any

import pytest

from proxy_operator.adapters.kube.errors import error_of, read_status
from proxy_operator.runtime.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    FieldError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    UnavailableError,
)
from tests.unit.adapters.kube.scripted import status


def read(code: int, *args: str, **details: Any):
    return error_of(
        read_status(code, json.dumps(status(code, *args, **details)).encode()), "Proxy d/p"
    )


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", InvalidError),
        (401, "Unauthorized", ForbiddenError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (405, "MethodNotAllowed", UnavailableError),
        (409, "AlreadyExists", AlreadyExistsError),
        (409, "Conflict", ConflictError),
        (410, "Gone", ExpiredError),
        (410, "Expired", ExpiredError),
        (422, "Invalid", InvalidError),
        (429, "TooManyRequests", UnavailableError),
        (500, "InternalError", UnavailableError),
        (503, "ServiceUnavailable", UnavailableError),
        (504, "Timeout", UnavailableError),
    ],
)
def test_each_refusal_is_an_error_of_the_port(code, reason, error):
    err = read(code, reason, "the reason why")
    assert type(err) is error
    assert "Proxy d/p" in str(err)


def test_every_fault_of_an_invalid_object_with_value_and_rule():
    err = read(
        422,
        "Invalid",
        "Proxy is invalid",
        causes=[
            {
                "field": "spec.endpoint.port",
                "message": "Invalid value: 70000: should be less than or equal to 65535",
            },
            {
                "field": "spec.scheme",
                "message": 'Unsupported value: "ftp": supported values: "http"',
            },
            {"field": "spec.provider", "message": 'Invalid value: "a\\"b": is immutable'},
            {"field": "spec", "message": 'Invalid value: "object": needs an endpoint'},
            {"field": "<nil>", "message": "some rules could not be checked"},
        ],
    )
    assert isinstance(err, InvalidError)
    assert err.errors == (
        FieldError("spec.endpoint.port", "70000", "should be less than or equal to 65535"),
        FieldError("spec.scheme", "", 'Unsupported value: "ftp": supported values: "http"'),
        FieldError("spec.provider", '"a\\"b"', "is immutable"),
        FieldError("spec", "", "needs an endpoint"),
    )


def test_strict_decoding_names_fields_in_its_sentence():
    err = read(
        400,
        "BadRequest",
        'Proxy in version "v1alpha1" cannot be handled as a Proxy: strict decoding error:'
        ' unknown field "spec.maxLease", duplicate field "spec.port"',
    )
    assert isinstance(err, InvalidError)
    assert err.errors == (
        FieldError("spec.maxLease", "", "unknown field"),
        FieldError("spec.port", "", "duplicate field"),
    )


def test_an_invalid_object_without_causes_keeps_the_sentence():
    err = read(400, "BadRequest", "the body is no object")
    assert isinstance(err, InvalidError)
    assert err.errors == (FieldError("", "", "the body is no object"),)


def test_a_patch_for_a_predecessor_is_a_conflict():
    cause = {"field": "metadata.uid", "message": 'Invalid value: "old": field is immutable'}
    err = read(422, "Invalid", "no", causes=[cause, cause])
    assert isinstance(err, ConflictError)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "Service Unavailable"),
        (b"upstream is gone\n", "upstream is gone"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[1, 2]", "[1, 2]"),
        (b"{}", "Service Unavailable"),
        (b"x" * 5000, "x" * 1000),
    ],
)
def test_an_answer_that_is_no_status_still_says_something(body, said):
    err = error_of(read_status(503, body), "things")
    assert isinstance(err, UnavailableError)
    assert str(err) == f"the API server answered 503 about things: {said}"


def test_a_code_without_a_name():
    assert "no explanation" in str(error_of(read_status(599, b""), "things"))
