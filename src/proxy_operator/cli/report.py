"""`report`: say how a leased proxy did."""

from dataclasses import dataclass
from typing import Final

from proxy_operator.app import lease_client
from proxy_operator.cli.api import ApiOptions, connect
from proxy_operator.cli.invocation import Invocation, UsageError
from proxy_operator.cli.output import print_line
from proxy_operator.domain.lease import ReportResult

_RESULTS: Final = [result.value for result in ReportResult]


@dataclass(frozen=True, kw_only=True)
class Options(ApiOptions):
    """Options of report."""

    target: str | None


def run(invocation: Invocation) -> int:
    """Report on one lease."""
    options = invocation.options(Options)
    lease_id, result = invocation.word("lease_id"), invocation.word("result")
    if result not in _RESULTS:
        raise UsageError(f"{result!r} is none of {', '.join(_RESULTS)}")
    with connect(options) as api:
        lease_client.report(api, lease_id, result, options.target)
    print_line(f"lease/{lease_id} reported {result}")
    return 0
