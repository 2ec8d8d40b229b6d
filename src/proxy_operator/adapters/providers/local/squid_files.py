"""What lies in the directory of a squid, as pure functions; the launcher writes it.

The names in the configuration are relative, and the directory is squid's working directory: where
the operator is root squid is not, and may enter no directory above this one.
"""

from typing import Any, Final, NamedTuple

from proxy_operator.adapters.providers.local.reach import Reach
from proxy_operator.adapters.providers.squid.config import SquidSettings, squid_conf
from proxy_operator.provisioning.targets import AllowedTarget, parse_allowed_target

CONF: Final = "squid.conf"
USERS: Final = "users"


class Surroundings(NamedTuple):
    """What may change while an instance lives."""

    reach: Reach
    own_addresses: tuple[str, ...]


def conf_for(
    settings: dict[str, Any], port: int, surroundings: Surroundings, *, descriptors: int
) -> str:
    """Return the configuration. `settings` is what the operator told the launcher."""
    reach = surroundings.reach
    return squid_conf(
        SquidSettings(
            port=port,
            bind=settings["bind"],
            users_file=USERS if settings["users"] else None,
            auth_helper=settings["programs"]["authHelper"],
            allowed_targets=(*reach.allowed, *_health_of(reach)),
            own_addresses=surroundings.own_addresses,
            closed_ports=reach.api_ports,
            egress_address=settings["egressAddress"],
            max_filedescriptors=descriptors,
        )
    )


def _health_of(reach: Reach) -> tuple[AllowedTarget, ...]:
    """Name what the operator probes its proxies against: one port of one host."""
    if reach.health_port is None:
        return ()
    host = f"[{reach.health_host}]" if ":" in reach.health_host else reach.health_host
    return (parse_allowed_target(f"{host}:{reach.health_port}"),)


def arguments_for(squid: str, instance: str) -> list[str]:
    """Return the command line: no daemon, messages to standard error, a name of its own.

    Squid takes letters and digits only as a name, and puts it before its segments in /dev/shm.
    """
    return [squid, "-N", "-d", "1", "-n", service_name(instance), "-f", CONF]


def service_name(instance: str) -> str:
    """Return by what name the squid of an instance is known to itself."""
    return instance.replace("-", "")


def complaint_of(log: str) -> str:
    """Return why squid ended, from what it said."""
    said = [line.partition("FATAL:")[2].strip() for line in log.splitlines() if "FATAL:" in line]
    return said[-1] if said else "it ended without a word"
