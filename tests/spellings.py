"""How a secret could show where it must not."""

import base64
import json
from urllib.parse import quote


def spellings(text: str) -> set[str]:
    """Every way in which it could show: raw, in a URL, in JSON, in base64 at any offset."""
    encoded = text.encode()
    shifted = [base64.b64encode(b"x" * n + encoded)[4 * (n > 0) : -4].decode() for n in range(3)]
    quoted = {quote(text, safe=""), quote(text)}
    return {text, json.dumps(text)[1:-1], repr(text)[1:-1], *quoted, *shifted}
