"""The part of a Kubernetes Secret this operator reads.

Values never reach a log, an Event, a condition or a table: `repr` hides them, and so does
`__rich_repr__`, which msgspec gives every struct and a pretty traceback would print.
"""

from typing import Any, Final

import msgspec

from proxy_operator.domain.meta import ObjectMeta

KIND: Final = "Secret"
API_VERSION: Final = "v1"


class Secret(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """Named bytes. On the wire `data` is base64, here it is the bytes themselves."""

    metadata: ObjectMeta
    data: dict[str, bytes] = {}
    type: str = "Opaque"
    api_version: str = API_VERSION
    kind: str = KIND

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}, keys={sorted(self.data)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        name = f"{self.metadata.namespace}/{self.metadata.name}"
        return [("name", name), ("keys", sorted(self.data))]


class Credentials(msgspec.Struct, frozen=True):
    """What a proxy asks of its clients."""

    username: str
    password: str

    def __repr__(self) -> str:
        return "Credentials(***)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


def credentials_of(secret: Secret) -> Credentials:
    """Read the keys `username` and `password`.

    ValueError names the key that is missing, empty or not UTF-8, or the username with a colon
    (RFC 7617 section 2: a user-id containing a colon cannot be encoded).
    """
    values: dict[str, str] = {}
    for key in ("username", "password"):
        raw = secret.data.get(key, b"")
        if not raw:
            raise ValueError(f"key {key} is missing or empty")
        try:
            values[key] = raw.decode()
        except UnicodeDecodeError as err:
            raise ValueError(f"key {key} is not UTF-8 text") from err
        if any(ord(char) < 32 or ord(char) == 127 for char in values[key]):
            raise ValueError(f"key {key} contains a control character")
    if ":" in values["username"]:
        raise ValueError("key username contains a colon")
    return Credentials(values["username"], values["password"])
