"""`lease`: borrow a proxy. Only the URL goes to standard output, for use in scripts."""

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from proxy_operator.app import lease_client
from proxy_operator.cli.api import ApiOptions, connect
from proxy_operator.cli.invocation import Invocation
from proxy_operator.cli.output import print_line, print_text, say


@dataclass(frozen=True, kw_only=True)
class Options(ApiOptions):
    """Options of lease."""

    namespace: str | None
    attr: tuple[tuple[str, str], ...]
    target: str | None
    ttl: timedelta | None
    output: str


def run(invocation: Invocation) -> int:
    """Lease a proxy and print its URL."""
    options = invocation.options(Options)
    wanted: dict[str, Any] = {}
    if options.attr:
        wanted["selector"] = dict(options.attr)
    if options.ttl is not None:
        wanted["ttlSeconds"] = math.ceil(options.ttl.total_seconds())
    if options.target is not None:
        wanted["target"] = options.target
    if options.namespace is not None:
        wanted["namespace"] = options.namespace
    with connect(options) as api:
        answer = lease_client.lease(api, wanted)
    if options.output == "json":
        from proxy_operator.cli.documents import to_json  # noqa: PLC0415 - a URL needs no objects

        print_text(to_json(answer))
        return 0
    proxy = answer["proxy"]
    print_line(proxy["url"])
    say(
        f"lease {answer['leaseID']} on proxy {proxy['namespace']}/{proxy['name']}"
        f" until {answer['expiresAt']}"
    )
    return 0
