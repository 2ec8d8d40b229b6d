"""Kinds of text and number that specs are made of, each with its bounds and its rule in words.

What a regular expression says is written as a CEL rule, never as `pattern`: both homes then refuse
with the same sentence, and RE2 is the one dialect (no look-around, `$` is the end of the text).
"""

from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from proxy_operator.domain.duration import PATTERN as DURATION_PATTERN


class Rule(NamedTuple):
    """A CEL validation on one node of the schema (`x-kubernetes-validations`)."""

    path: str
    """Dotted path from the object's root, such as `spec.healthCheck`; empty on a kind of field."""
    rule: str
    message: str
    field_path: str | None = None
    """Field the message is about, relative to `path`, as `.provider`."""

    def as_schema(self) -> dict[str, Any]:
        """Return the entry of `x-kubernetes-validations`."""
        entry: dict[str, Any] = {"rule": self.rule, "message": self.message}
        if self.field_path:
            entry["fieldPath"] = self.field_path
        return entry


def _matches(subject: str, pattern: str) -> str:
    return f"{subject}.matches(r'{pattern}')"


def _rule(expression: str, message: str, *, longest: int, shortest: int | None = None) -> Meta:
    """Describe text of `shortest` to `longest` characters for which a CEL expression holds."""
    rules = (Rule("", expression, message),)
    return Meta(min_length=shortest, max_length=longest, extra={"rules": rules})


def _text(pattern: str, message: str, *, longest: int, shortest: int | None = None) -> Meta:
    """Describe text of `shortest` to `longest` characters that matches an RE2 pattern."""
    return _rule(_matches("self", pattern), message, longest=longest, shortest=shortest)


def _keys(pattern: str, message: str, *, longest: int, most: int, description: str) -> Meta:
    """Describe a map of at most `most` entries whose keys match an RE2 pattern."""
    rule = f"self.all(k, k.size() <= {longest} && {_matches('k', pattern)})"
    return Meta(
        max_length=most,
        description=description,
        extra={"rules": (Rule("", rule, message),)},
    )


INT32: Final = {"format": "int32"}
INT64: Final = {"format": "int64"}

Port = Annotated[int, Meta(ge=1, le=65535, extra_json_schema=INT32)]
Count = Annotated[int, Meta(ge=0, le=1_000_000, extra_json_schema=INT32)]
Threshold = Annotated[int, Meta(ge=1, le=100, extra_json_schema=INT32)]
HttpStatus = Annotated[int, Meta(ge=200, le=599, extra_json_schema=INT32)]
DiskSize = Annotated[int, Meta(ge=1, le=65536, extra_json_schema=INT32)]
Int64 = Annotated[int, Meta(extra_json_schema=INT64)]
NaturalInt64 = Annotated[int, Meta(ge=0, extra_json_schema=INT64)]

Duration = Annotated[
    str, _text(DURATION_PATTERN, "must be a number and a unit, such as 90s or 5m", longest=32)
]

# Kubernetes object names (RFC 1123 subdomain) and keys of a Secret.
_NAME: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
ObjectName = Annotated[
    str,
    _text(
        rf"^{_NAME}(\.{_NAME})*$",
        "must be the name of an object: a-z 0-9 - and dots between letters or digits",
        longest=253,
        shortest=1,
    ),
]
SecretKey = Annotated[
    str,
    _text(r"^[-._a-zA-Z0-9]+$", "must be a key of a Secret: A-Z a-z 0-9 - _ and dots", longest=253),
]

# Labels of Kubernetes nodes.
_QUALIFIED: Final = (
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
)
LabelValue = Annotated[
    str,
    _text(
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "must be a label value: A-Z a-z 0-9 - _ and dots between letters or digits",
        longest=63,
    ),
]
NodeSelector = Annotated[
    dict[str, LabelValue],
    _keys(
        _QUALIFIED,
        "keys must be label keys, such as topology.kubernetes.io/zone",
        longest=317,
        most=32,
        description="Labels a node must have to run the Pod.",
    ),
]
TaintKey = Annotated[
    str, _text(rf"^$|{_QUALIFIED}", "must be a label key, such as example.com/spot", longest=317)
]

# Kubernetes quantities (resource.Quantity), without a sign: 500m, 64Mi, 1e3.
_DECIMAL: Final = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_QUANTITY: Final = rf"^{_DECIMAL}([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"
Quantity = Annotated[
    Annotated[str, Meta(max_length=32)] | int,
    Meta(
        extra={
            "rules": (
                Rule(
                    "",
                    f"type(self) == int ? self >= 0 : {_matches('string(self)', _QUANTITY)}",
                    "must be a quantity, such as 500m or 64Mi",
                ),
            )
        }
    ),
]
Quantities = Annotated[
    dict[str, Quantity],
    Meta(
        max_length=16,
        extra={
            "rules": (
                Rule(
                    "",
                    f"self.all(k, k.size() <= 317 && {_matches('k', _QUALIFIED)})",
                    "keys must be names of resources, such as cpu or memory",
                ),
            )
        },
    ),
]

AttributeValue = Annotated[str, Meta(max_length=1024)]
Attributes = Annotated[
    dict[str, AttributeValue],
    _keys(
        r"^[A-Za-z0-9._/-]+$",
        "keys must be 1 to 253 characters of A-Z a-z 0-9 . _ / -",
        longest=253,
        most=64,
        description="What lease selectors match: key and value, both exact.",
    ),
]

# Addresses. Small patterns joined by CEL, not one large one: patterns are compiled at every use.
# RFC 4291 section 2.2 for IPv6, with the zone of RFC 4007 section 11. An all-numeric last label is
# never a DNS name (RFC 3696 section 2), and libc reads 0x7f as one more number.
_OCTET: Final = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"
_GROUP: Final = r"[0-9A-Fa-f]{1,4}"
_GROUPS: Final = rf"({_GROUP}(:{_GROUP})*)?"
_ZONE: Final = r"(%[A-Za-z0-9_.-]{1,32})?"
_LABEL: Final = r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
_DNS_NAME: Final = rf"({_LABEL}\.)*{_LABEL}\.?"


def _is_ipv6(start: str, end: str) -> str:
    """Return CEL for an IPv6 address that a text has between two patterns.

    Eight groups, or fewer and one `::`; an IPv4 address may stand for the last two.
    """

    def has_groups(count: int, last: str) -> str:
        all_of_them = _matches("self", f"{start}({_GROUP}:){{{count}}}{last}{end}")
        rest = f"({_GROUP}:)*{last}" if last == _IPV4 else _GROUPS
        shortened = _matches("self", f"{start}{_GROUPS}::{rest}{end}")
        too_many = _matches("self", f"{start}:*({_GROUP}:+){{{count},}}{last}")
        return f"{all_of_them} || ({shortened} && !{too_many})"

    return f"({has_groups(7, _GROUP)} || {has_groups(6, _IPV4)})"


def _is_no_number(start: str, end: str) -> str:
    """Return CEL for a host, between two patterns, whose last label is no number."""
    return f"!{_matches('self', rf'{start}([^/?:]*[.])?([0-9]+|0[xX][0-9A-Fa-f]*)[.]?{end}')}"


_IS_NAME: Final = (
    f"{_matches('self', f'^{_DNS_NAME}$')} && {_is_no_number('^', '$')}"
    f" && (self.size() < 64 || !{_matches('self', '[^.]{64}')})"
)
_IS_HOST: Final = (
    f"self.contains(':') ? {_is_ipv6('^', f'{_ZONE}$')} : "
    f"({_matches('self', '^[0-9.]+$')} ? {_matches('self', f'^{_IPV4}$')} : {_IS_NAME})"
)
Host = Annotated[
    str,
    _rule(
        _IS_HOST,
        "must be a DNS name, an IPv4 address or an IPv6 address without brackets,"
        " and no scheme or port",
        shortest=1,
        longest=253,
    ),
]
IpAddress = Annotated[
    str,
    _rule(
        f"self.contains(':') ? {_is_ipv6('^', f'{_ZONE}$')} : {_matches('self', f'^{_IPV4}$')}",
        "must be an IPv4 address or an IPv6 address without brackets",
        longest=80,
    ),
]

# RFC 3986 in ASCII, without user information: a password has no place in a spec.
_PORT: Final = (
    r"(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?"
)
_AUTHORITY: Final = rf"({_DNS_NAME}|\[[0-9A-Fa-f:.]+\]){_PORT}"
_URL: Final = rf"^https?://{_AUTHORITY}([/?]([!$&-;=?-Z_a-z~]|%[0-9A-Fa-f]{{2}})*)?$"
_END: Final = "([:/?]|$)"
_IS_URL: Final = (
    f"{_matches('self', _URL)} && (self.contains('://[') ? "
    + _is_ipv6(r"^https?://\[", r"\]")
    + f" : ({_is_no_number('^https?://', _END)} || {_matches('self', f'^https?://{_IPV4}{_END}')}))"
)
HttpUrl = Annotated[
    str,
    _rule(
        _IS_URL,
        "must be an http:// or https:// URL in ASCII,"
        " with a host and without user, password or fragment",
        longest=2048,
    ),
]

# Names at Compute Engine: RFC 1035 labels, and paths of them.
Text = Annotated[
    str,
    _text(r"^[!-~]+$", "must be ASCII text without blanks", longest=1024, shortest=1),
]
GcpName = Annotated[
    str,
    _text(
        r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
        "must be a name: a-z 0-9 and -, a letter first and no - at the end",
        longest=63,
    ),
]
