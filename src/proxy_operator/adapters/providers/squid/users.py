"""The users file of a squid that asks for credentials.

A rule a visitor must keep: whatever basic_ncsa_auth would read as something else than was meant
is refused here, in words; a user who can never log in is worse than none.
"""

from typing import Final

from proxy_operator.adapters.providers.squid.sha512_crypt import sha512_crypt
from proxy_operator.domain.secret import Credentials

MAX_PASSWORD_BYTES: Final = 511
"""CRYPT_MAX_PASSPHRASE_SIZE of libxcrypt, less its terminator: crypt(3) refuses more."""
MAX_USERNAME_BYTES: Final = 255


def check_credentials(credentials: Credentials) -> None:
    """ValueError says what squid cannot take, and never repeats a value."""
    username = credentials.username.encode()
    if username[:1] in (b"#", b" "):
        # basic_ncsa_auth skips such lines of its file.
        raise ValueError("key username: squid knows no user whose name begins with # or a blank")
    if len(username) > MAX_USERNAME_BYTES:
        raise ValueError(f"key username: squid takes at most {MAX_USERNAME_BYTES} bytes")
    if len(credentials.password.encode()) > MAX_PASSWORD_BYTES:
        raise ValueError(f"key password: squid takes at most {MAX_PASSWORD_BYTES} bytes")


def users_file(credentials: Credentials, salt: str) -> str:
    """Return the file: one user, the password as a salted SHA-512 crypt hash.

    Slow (about 10 ms): call it off the event loop. ValueError as `check_credentials`.
    """
    check_credentials(credentials)
    return f"{credentials.username}:{sha512_crypt(credentials.password.encode(), salt)}\n"
