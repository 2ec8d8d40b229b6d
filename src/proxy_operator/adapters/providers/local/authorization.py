"""Who may use a proxy: Basic credentials (RFC 7617), compared in constant time."""

import base64
import hmac


def auth_codes(username: str, password: str) -> tuple[bytes, ...]:
    """Return what a client may send after `Basic`: as UTF-8, and as Latin-1 where that exists.

    RFC 7617 section 2.1 leaves the charset to the client, and many libraries use Latin-1.
    """
    codes = []
    for charset in ("utf-8", "latin-1"):
        try:
            codes.append(base64.b64encode(f"{username}:{password}".encode(charset)))
        except UnicodeEncodeError:
            continue
    return tuple(dict.fromkeys(codes))


def is_authorized(header: bytes, codes: tuple[bytes, ...]) -> bool:
    """Tell whether a Proxy-Authorization value carries one of the codes; constant in time."""
    scheme, _, code = header.strip().partition(b" ")
    matches = [hmac.compare_digest(code.strip(), one) for one in codes]
    return scheme.lower() == b"basic" and any(matches)
