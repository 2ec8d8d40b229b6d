"""The health and metrics endpoints: plain text for kubelets, probes and Prometheus.

Served without a token, each on a port of its own.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from proxy_operator.adapters.web.exchange import (
    TEXT,
    Headers,
    Response,
    content,
)

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns None when all is well, else the reason in one clause, free of secrets."""
Page = Callable[[], Response]

_ALLOW: Final = (b"allow", b"GET, HEAD")


class PageEndpoint:
    """Serves pages by exact path; any query is ignored, as scrapers and kubelets add their own."""

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._pages = pages

    def refuse(self, method: str, path: str, headers: Headers) -> Response | None:
        """Answer whatever announces a body: no page takes one."""
        del headers
        if method in ("GET", "HEAD") and path in self._pages:
            return None
        return self.dispatch(method, path, "", (), b"")

    def dispatch(
        self, method: str, path: str, query: str, headers: Headers, body: bytes
    ) -> Response:
        """Answer a request."""
        del query, headers, body
        page = self._pages.get(path)
        if page is None:
            return content(404, TEXT, b"not found\n")
        if method not in ("GET", "HEAD"):
            return content(405, TEXT, b"only GET and HEAD are answered\n", _ALLOW)
        try:
            return page()
        except Exception:
            logger.exception("a page failed", extra={"path": path})
            return content(500, TEXT, b"failed; the operator's log says why\n")


def health_endpoint(live: Mapping[str, Check], ready: Mapping[str, Check]) -> PageEndpoint:
    """Build `/healthz` and `/readyz`: 200 `ok`, or 503 with what fails and why."""
    return PageEndpoint(
        {
            "/healthz": lambda: _checked("healthz", live),
            "/readyz": lambda: _checked("readyz", ready),
        }
    )


def metrics_endpoint(render: Callable[[], tuple[bytes, str]]) -> PageEndpoint:
    """Build `/metrics` from a callable that returns the exposition and its content type."""

    def page() -> Response:
        body, kind = render()
        return content(200, kind.encode(), body)

    return PageEndpoint({"/metrics": page})


def _checked(name: str, checks: Mapping[str, Check]) -> Response:
    found = {check: _run(check, ask) for check, ask in checks.items()}
    if not any(found.values()):
        return content(200, TEXT, b"ok")
    lines = [
        f"[-]{check} failed: {reason}\n" if reason else f"[+]{check} ok\n"
        for check, reason in found.items()
    ]
    return content(503, TEXT, "".join([*lines, f"{name} check failed\n"]).encode())


def _run(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:
        logger.exception("a health check failed to run", extra={"check": name})
        return "the check itself failed"
