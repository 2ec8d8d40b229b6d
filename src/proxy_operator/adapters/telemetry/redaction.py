"""Takes secrets out of whatever is about to be logged.

The rule: by the name of a field, and by the shape of a text; when in doubt, out.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

REDACTED: Final = "***"

_SECRET_NAMES: Final = re.compile(
    r"pass(word|wd|phrase)?$|secret$|token$|authorization$|credentials?$|user[_-]?data$|cookie$"
    r"|api[_-]?key$|private[_-]?key$",
    re.IGNORECASE,
)

_PATTERNS: Final = (
    # RFC 3986 section 3.2.1: everything between the scheme and the last @ of the authority.
    (re.compile(r"(?<=://)[^/?#\s\"'<>]*@"), f"{REDACTED}@"),
    # RFC 9110 section 11.4: a scheme and its credentials.
    (re.compile(r"\b(Bearer|Basic) +[A-Za-z0-9._~+/=-]+"), rf"\1 {REDACTED}"),
    (
        re.compile(
            r"(authorization[\"']?\s*[=:]\s*[\"']?)[^\r\n\"']+",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            r"(?P<name>\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key)[\"']?\s*[=:]\s*)"
            r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s,;&\"'}\])]+)",
            re.IGNORECASE,
        ),
        rf"\g<name>{REDACTED}",
    ),
)
_HINT: Final = re.compile(
    r"://|bearer|basic|authorization|password|passwd|secret|token|api[_-]?key", re.IGNORECASE
)


def redact_text(text: str) -> str:
    """Return the text without credentials in URLs, headers and `name=value` pairs."""
    if not _HINT.search(text):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact(value: Any, name: str = "") -> Any:  # noqa: ANN401 - anything may be logged
    """Return the value to log under that name: containers are copied, never changed."""
    if name and value is not None and _SECRET_NAMES.search(name):
        return REDACTED
    if isinstance(value, Mapping):
        return {str(k): redact(v, str(k)) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redact(v) for v in value]
    if isinstance(value, (bytes, bytearray)):
        return f"<{len(value)} bytes>"
    is_plain = value is None or isinstance(value, (bool, int, float))
    return value if is_plain else redact_text(str(value))


def redact_event(_logger: object, _method: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Redact every field of an event (a structlog processor)."""
    return {name: redact(value, name) for name, value in event.items()}
