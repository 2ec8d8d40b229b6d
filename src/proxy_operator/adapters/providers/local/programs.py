"""Finding squid and its password helper on this machine.

A visitor must keep this rule: what was asked for and is missing is said, with the way to install
it; no other program takes its place.
"""

import os
from pathlib import Path
from typing import Final, NamedTuple

from proxy_operator.provisioning.errors import EnvironmentProviderError

# Absolute, because the operator's PATH says nothing: a service has another one than a shell.
SQUIDS: Final = ("/usr/sbin/squid", "/usr/local/sbin/squid", "/usr/local/squid/sbin/squid")
HELPERS: Final = (
    "/usr/lib/squid/basic_ncsa_auth",
    "/usr/lib64/squid/basic_ncsa_auth",
    "/usr/libexec/squid/basic_ncsa_auth",
    "/usr/local/squid/libexec/basic_ncsa_auth",
)


class SquidPrograms(NamedTuple):
    """Paths of what an instance with squid runs."""

    squid: str
    auth_helper: str


def find_squid() -> SquidPrograms:
    """Return where they are; EnvironmentProviderError when one is missing."""
    squid, helper = _first(SQUIDS), _first(HELPERS)
    missing = "squid" if squid is None else "squid's helper basic_ncsa_auth"
    if squid is None or helper is None:
        raise EnvironmentProviderError(
            f"spec.local.engine: {missing} is not installed on this machine; install it with"
            " `apt-get install squid`, or set engine to proxy-py"
        )
    return SquidPrograms(squid, helper)


def _first(paths: tuple[str, ...]) -> str | None:
    runnable = (path for path in paths if Path(path).is_file() and os.access(path, os.X_OK))
    return next(runnable, None)
