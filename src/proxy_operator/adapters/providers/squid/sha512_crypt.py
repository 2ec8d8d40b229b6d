"""The password hash `$6$` of crypt(3), which squid's basic_ncsa_auth takes.

A frozen public algorithm, written after its specification (U. Drepper, "Unix crypt using
SHA-256 and SHA-512", version 0.6). Python has none since 3.13. Here only hashes are made: no
password is ever compared with one.
"""

import hashlib
import secrets
from typing import Final

ROUNDS: Final = 5000
"""The default of the specification; any other count would have to be written into the hash."""
_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SALT_LENGTH: Final = 16


def new_salt() -> str:
    """Return a fresh salt of 96 bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SALT_LENGTH))


def sha512_crypt(password: bytes, salt: str) -> str:
    """Return `$6$salt$hash`. Takes about 10 ms of CPU: call it off the event loop."""
    if not 1 <= len(salt) <= _SALT_LENGTH or set(salt) - set(_ALPHABET):
        raise ValueError("a salt has 1 to 16 characters of ./0-9A-Za-z")
    salt_bytes = salt.encode()
    digest = _first_digest(password, salt_bytes)
    repeated = _stretch(hashlib.sha512(password * len(password)).digest(), len(password))
    salted = _stretch(hashlib.sha512(salt_bytes * (16 + digest[0])).digest(), len(salt_bytes))
    for number in range(ROUNDS):
        odd = number & 1
        content = repeated if odd else digest
        if number % 3:
            content += salted
        if number % 7:
            content += repeated
        digest = hashlib.sha512(content + (digest if odd else repeated)).digest()
    return f"$6${salt}${_encode(digest)}"


def _first_digest(password: bytes, salt: bytes) -> bytes:
    mixed = hashlib.sha512(password + salt + password).digest()
    content = password + salt + _stretch(mixed, len(password))
    bits = len(password)
    while bits:
        content += mixed if bits & 1 else password
        bits >>= 1
    return hashlib.sha512(content).digest()


def _stretch(digest: bytes, length: int) -> bytes:
    return (digest * (length // len(digest) + 1))[:length]


def _encode(digest: bytes) -> str:
    """Write 64 bytes in the order and the alphabet of crypt(3)."""
    first, second, third = 0, 21, 42
    text = ""
    for _ in range(21):
        text += _digits((digest[first] << 16) | (digest[second] << 8) | digest[third], 4)
        first, second, third = second + 1, third + 1, first + 1
    return text + _digits(digest[63], 2)


def _digits(value: int, count: int) -> str:
    return "".join(_ALPHABET[(value >> (6 * place)) & 63] for place in range(count))
