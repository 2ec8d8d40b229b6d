"""Who may ask: a bearer token, or on loopback nobody else than this machine.

A token is compared in constant time and never stands in a log, an error or a `repr`. Whatever is
wrong with a token file later on, the last good token stays in force: auth never turns itself off.
"""

import functools
import hmac
import logging
import os
from pathlib import Path
from typing import Final, Protocol

from proxy_operator.adapters.web.bind import Bind
from proxy_operator.adapters.web.errors import ApiError, ErrorCode
from proxy_operator.adapters.web.exchange import Headers, header
from proxy_operator.runtime.clock import Clock

logger = logging.getLogger(__name__)

_CHECK_EVERY: Final = 1.0
"""Seconds between two looks at the token file."""
_CHALLENGE: Final = (b"www-authenticate", b'Bearer realm="proxy-operator"')


class Guard(Protocol):
    """Decides whether a request may go on."""

    def check(self, headers: Headers) -> None:
        """Return when it may; raise the ApiError to answer when it may not."""


class TokenSource(Protocol):
    """Knows the token clients must send."""

    def current(self) -> bytes:
        """Return the token, never empty."""


def check_exposure(bind: Bind, *, has_token: bool, allow_unauthenticated: bool) -> str | None:
    """Decide whether the API may listen there; return a warning to log, or None.

    ValueError when anybody on the network could lease proxies without a token.
    """
    if has_token:
        return None
    if bind.is_loopback:
        return (
            f"the discovery API on {bind} asks for no token, so everybody on this machine can "
            "lease proxies and read their passwords; set DISCOVERY_TOKEN or --discovery-token-file"
        )
    if allow_unauthenticated:
        return (
            f"the discovery API on {bind} asks for no token, so everybody who can connect can "
            "lease proxies and read their passwords"
        )
    raise ValueError(
        f"refusing to serve the discovery API on {bind} without a token: set DISCOVERY_TOKEN or "
        "--discovery-token-file, bind a loopback address, or pass --allow-unauthenticated"
    )


def read_token(text: str) -> bytes:
    """Take a token as somebody wrote it, without surrounding white space.

    ValueError when it is empty or cannot stand in a header (RFC 6750 section 2.1).
    """
    token = text.strip()
    if not token:
        raise ValueError("the token is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("the token has a character other than visible ASCII")
    return token.encode()


class StaticToken:
    """A token that stays."""

    def __init__(self, token: bytes) -> None:
        self._token = token

    def current(self) -> bytes:
        return self._token


class FileToken:
    """A token in a file, read again when the file changes (a mounted Secret is rotated so)."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._token = b""
        self._seen: tuple[int, ...] | None = None
        self._look_at = 0.0

    def load(self) -> None:
        """Read the file for the first time. ValueError says what is wrong with it."""
        try:
            self._seen = self._stamp()
            self._token = read_token(self._path.read_text())
        except OSError as err:
            raise ValueError(f"cannot read token file {self._path}: {err.strerror}") from err
        except ValueError as err:
            raise ValueError(f"token file {self._path}: {_why(err)}") from err
        self._look_at = self._clock.monotonic() + _CHECK_EVERY

    def current(self) -> bytes:
        now = self._clock.monotonic()
        if now >= self._look_at:
            self._look_at = now + _CHECK_EVERY
            self._reload()
        return self._token

    def _reload(self) -> None:
        try:
            seen = self._stamp()
            if seen == self._seen:
                return
            token = read_token(self._path.read_text())
        except (OSError, ValueError) as err:
            logger.warning(
                "token file unusable, the last token stays in force",
                extra={"path": str(self._path), "reason": _why(err)},
            )
            return
        self._seen = seen
        if token != self._token:
            self._token = token
            logger.info("token file re-read", extra={"path": str(self._path)})

    def _stamp(self) -> tuple[int, ...]:
        stat = os.stat(self._path)
        return stat.st_mtime_ns, stat.st_ino, stat.st_size, stat.st_ctime_ns


class BearerGuard:
    """Asks for `Authorization: Bearer TOKEN` (RFC 6750). Every refusal looks the same."""

    def __init__(self, tokens: TokenSource) -> None:
        self._tokens = tokens

    def check(self, headers: Headers) -> None:
        sent = header(headers, b"authorization") or b""
        scheme, _, token = sent.partition(b" ")
        is_right = hmac.compare_digest(token.strip(), self._tokens.current())
        if not is_right or scheme.lower() != b"bearer":
            raise ApiError(
                ErrorCode.UNAUTHORIZED,
                "send the header Authorization: Bearer TOKEN with the discovery token",
                _CHALLENGE,
            )


class OpenGuard:
    """Asks for nothing.

    On loopback the machine's own browsers still have to be kept out: a page from elsewhere could
    otherwise lease proxies by a form, or read passwords after rebinding its name to 127.0.0.1.
    """

    def __init__(self, bind: Bind) -> None:
        self._is_loopback = bind.is_loopback

    def check(self, headers: Headers) -> None:
        if not self._is_loopback:
            return
        for name in (b"host", b"origin"):
            value = header(headers, name)
            if value is not None and not _is_local(value):
                raise ApiError(
                    ErrorCode.FORBIDDEN,
                    f"without a token only localhost is served, not {name.decode()} "
                    f"{value.decode('latin-1')}; set DISCOVERY_TOKEN to serve other names",
                )


@functools.lru_cache(maxsize=64)
def _is_local(value: bytes) -> bool:
    """Tell whether a Host or Origin names this machine's loopback."""
    authority = value.decode("latin-1").lower().rpartition("://")[2]
    host = authority
    if not authority.endswith("]") and ":" in authority:
        host = authority.rpartition(":")[0]
    return Bind(host.removeprefix("[").removesuffix("]"), 0).is_loopback


def _why(err: Exception) -> str:
    if isinstance(err, UnicodeDecodeError):
        return "not UTF-8 text"
    return (err.strerror if isinstance(err, OSError) else None) or str(err)
