"""Which URL a proxy is probed against. Pure; the one place that decides it."""

from typing import NamedTuple
from urllib.parse import urlsplit

from proxy_operator.domain.proxy import ProviderName, Proxy


class TargetRules(NamedTuple):
    """The operator's own answers, for proxies that name no target."""

    health_url: str | None = None
    """Default target of the whole fleet (`--health-url`)."""
    own_url: str | None = None
    """The operator's own health endpoint, which instances on the same machine can reach."""


def target_of(proxy: Proxy, rules: TargetRules) -> str | None:
    """Return the URL to fetch through this proxy, or None when there is nothing to probe.

    The proxy's own target, else the fleet's, else for local instances the operator itself: no
    third party ever hears of a proxy unless somebody named one.
    """
    if proxy.spec.health_check.url is not None:
        return proxy.spec.health_check.url
    if rules.health_url is not None:
        return rules.health_url
    return rules.own_url if proxy.spec.provider is ProviderName.LOCAL else None


def label_of(url: str) -> str:
    """Return a target's scheme, host and port, to be shown to everybody.

    A path or a query may hold a token. Longer than any name of the DNS is cut short.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "invalid"
    bracketed = f"[{host}]" if ":" in host else host[:253]
    is_usual = port in {None, {"http": 80, "https": 443}.get(parts.scheme)}
    return f"{parts.scheme}://{bracketed}" + ("" if is_usual else f":{port}")
