"""`release`: end leases before their time."""

from proxy_operator.app import lease_client
from proxy_operator.cli.api import ApiOptions, connect
from proxy_operator.cli.invocation import Invocation
from proxy_operator.cli.output import print_line


def run(invocation: Invocation) -> int:
    """Release every lease that is named; unknown ones count as released."""
    options = invocation.options(ApiOptions)
    with connect(options) as api:
        for lease_id in invocation.words("lease_ids"):
            lease_client.release(api, lease_id)
            print_line(f"lease/{lease_id} released")
    return 0
