import logging

import pytest

from proxy_operator.adapters.web.exchange import Response
from proxy_operator.adapters.web.probes import PageEndpoint, health_endpoint, metrics_endpoint


def get(endpoint: PageEndpoint, path: str, method: str = "GET") -> Response:
    return endpoint.dispatch(method, path, "", (), b"")


def test_all_well_is_ok():
    endpoint = health_endpoint({}, {"leader": lambda: None})
    for path in ("/healthz", "/readyz"):
        assert get(endpoint, path)[::2] == (200, b"ok")


def test_what_fails_is_told_with_its_reason():
    endpoint = health_endpoint({}, {"lists": lambda: None, "watch": lambda: "silent for 90s"})
    answer = get(endpoint, "/readyz")
    assert answer.status == 503
    assert answer.body.decode().splitlines() == [
        "[+]lists ok",
        "[-]watch failed: silent for 90s",
        "readyz check failed",
    ]
    assert get(endpoint, "/healthz").status == 200


def test_a_check_that_fails_to_run_is_a_failed_check(caplog):
    def broken() -> str | None:
        raise RuntimeError("inner")

    with caplog.at_level(logging.ERROR):
        answer = get(health_endpoint({"queue": broken}, {}), "/healthz")
    assert answer.status == 503
    assert b"inner" not in answer.body
    assert "inner" in caplog.text


def test_metrics_have_the_content_type_of_their_renderer():
    endpoint = metrics_endpoint(lambda: (b"up 1\n", "text/plain; version=0.0.4"))
    answer = get(endpoint, "/metrics")
    assert (answer.status, answer.body) == (200, b"up 1\n")
    assert (b"content-type", b"text/plain; version=0.0.4") in answer.headers


def test_a_renderer_that_fails_is_a_500_and_a_log_line(caplog):
    def broken() -> tuple[bytes, str]:
        raise RuntimeError("inner")

    with caplog.at_level(logging.ERROR):
        answer = get(metrics_endpoint(broken), "/metrics")
    assert answer.status == 500
    assert b"inner" not in answer.body
    assert "inner" in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nope", 404),
        ("GET", "/readyz/", 404),
        ("POST", "/readyz", 405),
        ("HEAD", "/readyz", 200),
        ("POST", "/nope", 404),
    ],
)
def test_other_requests_are_refused(method, path, status):
    endpoint = health_endpoint({}, {})
    assert get(endpoint, path, method).status == status
    refusal = endpoint.refuse(method, path, ())
    assert (refusal.status if refusal else 200) == status


def test_queries_of_kubelets_and_scrapers_are_ignored():
    assert health_endpoint({}, {}).dispatch("GET", "/readyz", "verbose", (), b"").status == 200
