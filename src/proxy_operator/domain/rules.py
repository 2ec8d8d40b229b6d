"""Rules over several fields of a Proxy, in core CEL: both homes know no other functions.

`oldSelf` makes a rule a transition rule: it applies to updates only.
"""

from typing import Final

from proxy_operator.domain.fields import Rule


def _only_with(block: str) -> Rule:
    return Rule(
        "spec",
        f"!has(self.{block}) || (has(self.provider) && self.provider == '{block}')",
        f"{block} may be set only when provider is {block}",
        f".{block}",
    )


PROXY_RULES: Final = (
    Rule("spec", "self.mode == oldSelf.mode", "mode is immutable", ".mode"),
    Rule(
        "spec",
        "has(self.provider) == has(oldSelf.provider)"
        " && (!has(self.provider) || self.provider == oldSelf.provider)",
        "provider is immutable",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'Managed' || has(self.provider)",
        "provider is required when mode is Managed",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.provider)",
        "provider is forbidden when mode is External",
        ".provider",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || has(self.endpoint)",
        "endpoint is required when mode is External",
        ".endpoint",
    ),
    Rule(
        "spec",
        "self.mode != 'Managed' || !has(self.endpoint)",
        "endpoint is forbidden when mode is Managed",
        ".endpoint",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.port)",
        "port is forbidden when mode is External: set endpoint.port",
        ".port",
    ),
    Rule(
        "spec",
        "self.mode != 'External' || !has(self.cloudInit)",
        "cloudInit is forbidden when mode is External",
        ".cloudInit",
    ),
    _only_with("gcp"),
    _only_with("kubernetes"),
    _only_with("local"),
    Rule(
        "spec.healthCheck",
        "duration(self.interval) >= duration('1s') && duration(self.interval) <= duration('24h')",
        "interval must be at least 1s and at most 24h",
        ".interval",
    ),
    Rule(
        "spec.healthCheck",
        "duration(self.timeout) >= duration('100ms')",
        "timeout must be at least 100ms",
        ".timeout",
    ),
    Rule(
        "spec.healthCheck",
        "duration(self.timeout) <= duration(self.interval)",
        "timeout must not be longer than interval",
        ".timeout",
    ),
)
