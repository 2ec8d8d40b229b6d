"""What a request is signed with when it need not be fetched from anybody: fixed, or in a file."""

import logging
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from proxy_operator.adapters.kube.material import Stamp, stamp_of
from proxy_operator.adapters.kube.tls import KeyPair
from proxy_operator.runtime.clock import Clock

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 1.0
"""Between two looks at whether a token file was replaced: one look costs a system call."""
_REREAD_SECONDS: Final = 60.0
"""As client-go does; a bound token is replaced at 80 % of its life, an hour by default."""


@dataclass(frozen=True)
class Proof:
    """What tells the API server who we are; either part may be missing."""

    authorization: str | None = field(default=None, repr=False)
    key_pair: KeyPair | None = None


class Proofs(Protocol):
    """Where proofs come from. Calls may overlap."""

    async def current(self) -> Proof:
        """Return the proof to use now. CredentialsError when there is none: retry with backoff."""

    async def refresh(self, refused: Proof) -> bool:
        """Look for another proof than the refused one; True when `current` has one."""


class FixedProof:
    """A proof that stands in the configuration, or the lack of one."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    async def current(self) -> Proof:
        return self._proof

    async def refresh(self, refused: Proof) -> bool:
        return refused != self._proof


class TokenFile:
    """A bearer token in a file that somebody else keeps fresh.

    The last token that could be read stays in use when the file cannot be.
    """

    def __init__(self, path: Path, token: str | None, clock: Clock) -> None:
        self._path = path
        self._proof = Proof() if token is None else bearer(token)
        self._clock = clock
        self._stamp: Stamp | None = None
        self._looked_at = self._read_at = -math.inf

    async def current(self) -> Proof:
        now = self._clock.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = now
            if now - self._read_at >= _REREAD_SECONDS or stamp_of(self._path) != self._stamp:
                self._read()
        return self._proof

    async def refresh(self, refused: Proof) -> bool:
        self._read()
        return refused != self._proof

    def _read(self) -> None:
        self._read_at = self._clock.monotonic()
        self._stamp = stamp_of(self._path)
        try:
            self._proof = bearer(read_token(self._path))
        except ValueError as err:
            logger.warning(
                "the last token stays in use", extra={"file": str(self._path), "reason": str(err)}
            )


def bearer(token: str) -> Proof:
    """Return the proof that a bearer token is (RFC 6750 section 2.1)."""
    return Proof(authorization=f"Bearer {token}")


def read_token(path: Path) -> str:
    """Return the token in a file. ValueError says what is wrong, without a word of its content."""
    try:
        token = path.read_bytes().decode("ascii").strip()
    except OSError as err:
        reason = (err.strerror or "input/output error").lower()
        raise ValueError(f"{path} cannot be read: {reason}") from err
    except UnicodeDecodeError:
        raise ValueError(f"{path} holds no token") from None
    if not is_token(token):
        raise ValueError(f"{path} holds no token")
    return token


def is_token(text: str) -> bool:
    """Tell whether the text can stand in a header as one token."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text
