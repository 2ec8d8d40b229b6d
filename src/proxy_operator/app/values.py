"""How the text of a flag or variable becomes a value.

Every parser raises ValueError with one clause that says what is wrong and what a right value
looks like; the caller adds which option it was.
"""

import ipaddress
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from proxy_operator.adapters.web.bind import parse_bind
from proxy_operator.domain.allow_list import parse_allowed_host
from proxy_operator.domain.duration import parse_duration
from proxy_operator.provisioning.targets import parse_allowed_target

_YES: Final = {"true", "1", "yes", "on"}
_NO: Final = {"false", "0", "no", "off"}
_LABEL_VALUE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")

_GCP_PROJECT: Final = re.compile(r"([a-z0-9.-]{1,63}:)?[a-z][a-z0-9-]{4,28}[a-z0-9]")


class Kind(NamedTuple):
    """A type of option: the word shown for its value, and its parser."""

    metavar: str
    parse: Callable[[str], Any]


def parse_switch(text: str) -> bool:
    """Read a truth value as people write it in variables."""
    word = text.lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ValueError(f"{text!r} is neither true nor false")


def parse_count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isascii() or not text.isdecimal() or len(text) > 6 or int(text) < 1:
        raise ValueError(f"{text!r} is not a whole number from 1 to 999999")
    return int(text)


def parse_span(text: str) -> timedelta:
    """Read a duration longer than nothing."""
    span = parse_duration(text)
    if span <= timedelta():
        raise ValueError(f"{text!r} must be longer than nothing, such as 90s or 5m")
    return span


def parse_address(text: str) -> str:
    """Read an IP address."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"{text!r} is not an IP address, such as 127.0.0.1") from None


def parse_url(text: str) -> str:
    """Read an absolute http or https URL without credentials."""
    try:
        parts = urlsplit(text)
        is_good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError("the value is not a URL, such as http://127.0.0.1:8090") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL must not carry credentials")
    if not is_good or any(char.isspace() for char in text):
        raise ValueError(f"{text!r} is not an http or https URL, such as http://127.0.0.1:8090")
    return text


def parse_path(text: str) -> Path:
    """Read a path; `~` is the home directory."""
    if not text or "\0" in text:
        raise ValueError("a path must not be empty")
    return Path(text).expanduser()


def parse_text(text: str) -> str:
    """Take any text but none."""
    if not text:
        raise ValueError("the value must not be empty")
    return text


def parse_namespace(text: str) -> str:
    """Read the name of a namespace."""
    if len(text) > 63 or not _OBJECT_NAME.fullmatch(text) or "." in text:
        raise ValueError(f"{text!r} is not a namespace: lower case letters, digits and -, up to 63")
    return text


def parse_cluster_id(text: str) -> str:
    """Read a cluster id: it becomes the value of a label at every provider."""
    if not _LABEL_VALUE.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a cluster id: lower case letters, digits and -, up to 63 characters"
        )
    return text


def parse_gcp_project(text: str) -> str:
    """Read the id of a Google Cloud project; one of a domain has the domain before a colon."""
    if not _GCP_PROJECT.fullmatch(text):
        raise ValueError(f"{text!r} is not the id of a project, such as my-project-123456")
    return text


def parse_token(text: str) -> str:
    """Read a bearer token (RFC 6750 section 2.1: visible ASCII). Never quoted in the error."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("a token consists of visible ASCII characters without spaces")
    return text


def parse_pair(text: str) -> tuple[str, str]:
    """Read `key=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"{text!r} is not a pair: write key=value")
    return key, value


def parse_selector(text: str) -> dict[str, str]:
    """Read `key=value,other=value`, all of which must hold (`==` is the same as `=`)."""
    pairs = [parse_pair(part.strip()) for part in text.split(",") if part.strip()]
    if not pairs or any(key.endswith("!") for key, _ in pairs):
        raise ValueError(f"{text!r} is not a selector: write key=value, several with commas")
    return {key.strip(): value.removeprefix("=").strip() for key, value in pairs}


def choice(*words: str) -> Kind:
    """Make a kind that accepts just these words."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"{text!r} is none of {', '.join(words)}")
        return text

    return Kind("|".join(words), parse)


ADDRESS: Final = Kind("ADDRESS", parse_address)
BIND: Final = Kind("HOST:PORT", parse_bind)
CLUSTER_ID: Final = Kind("ID", parse_cluster_id)
COUNT: Final = Kind("N", parse_count)
DURATION: Final = Kind("DURATION", parse_span)
GCP_PROJECT: Final = Kind("PROJECT", parse_gcp_project)
NAMESPACE: Final = Kind("NAMESPACE", parse_namespace)
PAIR: Final = Kind("KEY=VALUE", parse_pair)
PATH: Final = Kind("PATH", parse_path)
SELECTOR: Final = Kind("KEY=VALUE,…", parse_selector)
SWITCH: Final = Kind("", parse_switch)
TARGET: Final = Kind("HOST:PORT|CIDR", parse_allowed_target)
HOSTS: Final = Kind("HOST[:PORT]|*.SUFFIX[:PORT]|CIDR", parse_allowed_host)
TEXT: Final = Kind("TEXT", parse_text)
TOKEN: Final = Kind("TOKEN", parse_token)
URL: Final = Kind("URL", parse_url)
