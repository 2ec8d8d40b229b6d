"""The documentation page: Swagger UI over `/openapi.json`, all of it from this package.

The page may load nothing from any other host; its Content-Security-Policy says so to the browser.
"""

import functools
from importlib import resources
from typing import Final

from proxy_operator.adapters.web.errors import ApiError, ErrorCode
from proxy_operator.adapters.web.exchange import Response, content

_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SAFE: Final = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
_ASSETS: Final = {
    "swagger-ui.css": b"text/css; charset=utf-8",
    "swagger-ui-bundle.js": b"text/javascript; charset=utf-8",
    "page.css": b"text/css; charset=utf-8",
    "page.js": b"text/javascript; charset=utf-8",
}
_CACHE: Final = (b"cache-control", b"public, max-age=3600")


def page() -> Response:
    """Return the page itself."""
    return content(200, b"text/html; charset=utf-8", _read("page.html"), *_SAFE)


def asset(name: str) -> Response:
    """Return one of the page's files; ApiError when it has none of that name."""
    kind = _ASSETS.get(name)
    if kind is None:
        raise ApiError(ErrorCode.NOT_FOUND, "no such file; see /docs")
    return content(200, kind, _read(name), _CACHE, *_SAFE)


@functools.cache
def _read(name: str) -> bytes:
    return (resources.files("proxy_operator.adapters.web") / "static" / name).read_bytes()
