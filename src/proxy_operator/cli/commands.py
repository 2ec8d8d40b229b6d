"""The commands, as data: their arguments, their help, and the module that carries each out.

Nothing here may import more than this: `--help` is answered from these rows alone.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Argument:
    """A word after the command."""

    name: str
    metavar: str
    help: str
    is_required: bool = True
    is_repeatable: bool = False


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command. `module` has a function `run(invocation)` that returns the exit code."""

    name: str
    module: str
    help: str
    """One line of at most 60 characters."""
    details: str = ""
    arguments: tuple[Argument, ...] = ()


_LEASE_ID: Final = Argument(name="lease_id", metavar="LEASE_ID", help="As `lease` printed it.")

COMMANDS: Final = (
    Command(
        name="run",
        module="proxy_operator.cli.run",
        help="Run the operator.",
        details="It stops in order at SIGTERM or Ctrl-C, and at once at a second one.",
    ),
    Command(
        name="apply",
        module="proxy_operator.cli.apply",
        help="Make objects exist as manifests say.",
        details="YAML or JSON, several documents in a file; all are checked before any is written.",
    ),
    Command(
        name="get",
        module="proxy_operator.cli.get",
        help="Show proxies or Secrets.",
        details="The data of a Secret is never shown, only the size of each key.",
        arguments=(
            Argument(name="resource", metavar="KIND[/NAME]", help="proxies or secrets."),
            Argument(
                name="names",
                metavar="[NAME]...",
                help="Only these.",
                is_required=False,
                is_repeatable=True,
            ),
        ),
    ),
    Command(
        name="describe",
        module="proxy_operator.cli.describe",
        help="Show one object in full, with its Events.",
        arguments=(
            Argument(name="resource", metavar="KIND[/NAME]", help="proxy or secret."),
            Argument(
                name="names",
                metavar="[NAME]...",
                help="Only these.",
                is_required=False,
                is_repeatable=True,
            ),
        ),
    ),
    Command(
        name="delete",
        module="proxy_operator.cli.delete",
        help="Delete objects.",
        details="A Proxy is gone when its instance is; by default the command waits for that.",
        arguments=(
            Argument(
                name="words",
                metavar="KIND NAME... | KIND/NAME...",
                help="What to delete, unless -f says it.",
                is_required=False,
                is_repeatable=True,
            ),
        ),
    ),
    Command(
        name="instances",
        module="proxy_operator.cli.instances",
        help="List instances, those of other operators too.",
        details="Finds what is left of a lost data directory or cluster. It changes nothing.",
    ),
    Command(
        name="lease",
        module="proxy_operator.cli.lease",
        help="Lease a healthy proxy and print its URL.",
        details="The URL holds the credentials, if any. The lease id goes to standard error.",
    ),
    Command(
        name="release",
        module="proxy_operator.cli.release",
        help="End leases.",
        arguments=(
            Argument(
                name="lease_ids",
                metavar="LEASE_ID...",
                help="As `lease` printed them.",
                is_repeatable=True,
            ),
        ),
    ),
    Command(
        name="report",
        module="proxy_operator.cli.report",
        help="Say how a leased proxy did.",
        details="rate_limited and banned keep it from being offered for the target for a while.",
        arguments=(
            _LEASE_ID,
            Argument(name="result", metavar="ok|rate_limited|banned", help="How it went."),
        ),
    ),
    Command(
        name="crd",
        module="proxy_operator.cli.crd",
        help="Print the CustomResourceDefinition of Proxy.",
    ),
    Command(
        name="down",
        module="proxy_operator.cli.down",
        help="Delete every Proxy and wait for the instances to go.",
        details="Works with and without a running operator.",
    ),
)
