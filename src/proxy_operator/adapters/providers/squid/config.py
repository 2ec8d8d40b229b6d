"""The configuration of a squid of ours, as one pure function.

What it must keep: nothing about the client or the proxy reaches an origin, nothing is cached or
written to a disk, and no secret is in it (passwords are in the users file, as hashes).
"""

import ipaddress
from datetime import timedelta
from typing import Final, NamedTuple

from proxy_operator.adapters.providers.squid.targets import (
    DENIED_NAMES,
    THIS_HOST,
    denied_networks,
    uncovered,
    without,
)
from proxy_operator.provisioning.targets import AllowedTarget

NCSA_AUTH: Final = "/usr/lib/squid/basic_ncsa_auth"
"""Where Debian and Ubuntu keep the helper."""

# Never denied by number: mail and other services speak enough HTTP to be abused through a proxy.
_WEB_PORTS: Final = "80 443 1024-65535"
_NOWHERE_V4: Final = "240.0.0.1"
_NOWHERE_V6: Final = "100::1"
_PRIVATE_HEADERS: Final = ("Via", "Forwarded", "X-Forwarded-For", "X-Real-IP", "Proxy-Connection")


class SquidSettings(NamedTuple):
    """What differs between one squid and the next. Processes that must stay small carry it."""

    port: int
    bind: str | None = None
    """Address to listen on; None is all."""
    users_file: str | None = None
    """Path of the users file; None asks nobody for credentials."""
    auth_helper: str = NCSA_AUTH
    allowed_targets: tuple[AllowedTarget, ...] = ()
    own_addresses: tuple[str, ...] = ()
    """Addresses of the machine beyond loopback: denied unless allowed, public ones too."""
    closed_ports: tuple[int, ...] = ()
    """Ports of this machine that nothing opens, whatever is allowed."""
    egress_address: str | None = None
    """Source address of connections; None leaves it to the system."""
    shutdown_lifetime: timedelta = timedelta(seconds=10)
    """How long open connections may go on after SIGTERM; keep it under the grace period."""
    max_filedescriptors: int = 8192
    """Bounds connections, and the tables squid makes for them whatever RLIMIT_NOFILE says."""


def squid_conf(settings: SquidSettings) -> str:
    """Return the configuration, for squid 5 and later, started with `-N` by any user.

    Where several run in one IPC namespace each needs a name of its own (`-n`, letters and digits):
    they would share, and fail to open, the segments /dev/shm/NAME-*.
    """
    sections = (
        _listening(settings),
        _authentication(settings),
        _access(settings),
        _HYGIENE,
        _STATELESS,
        _limits(settings),
    )
    return "\n".join(line for section in sections for line in (*section, ""))


def _listening(settings: SquidSettings) -> tuple[str, ...]:
    lines = [f"http_port {_address(settings.bind)}{settings.port}", "visible_hostname proxy"]
    if settings.egress_address is not None:
        # A family without a line goes out from the system's choice: it gets an address that no
        # machine has, so that connecting fails and the target's other family is tried.
        version = ipaddress.ip_address(settings.egress_address).version
        nowhere = _NOWHERE_V6 if version == 4 else _NOWHERE_V4
        lines += [f"tcp_outgoing_address {it}" for it in (settings.egress_address, nowhere)]
    return tuple(lines)


def _address(bind: str | None) -> str:
    if bind is None:
        return ""
    return f"[{bind}]:" if ipaddress.ip_address(bind).version == 6 else f"{bind}:"


def _authentication(settings: SquidSettings) -> tuple[str, ...]:
    if settings.users_file is None:
        return ()
    return (
        f"auth_param basic program {settings.auth_helper} {settings.users_file}",
        "auth_param basic children 4 startup=1 idle=1",
        "auth_param basic realm proxy",
        "auth_param basic credentialsttl 1 hour",
        # Squid's default lowers user names before it asks.
        "auth_param basic casesensitive on",
        # Some clients send Latin-1 (RFC 7617 leaves it open); what is UTF-8 already stays.
        "auth_param basic utf8 on",
        "acl authenticated proxy_auth REQUIRED",
    )


def _access(settings: SquidSettings) -> tuple[str, ...]:
    lines = [
        f"acl web_ports port {_WEB_PORTS}",
        f"acl denied_names dstdomain -n {' '.join(DENIED_NAMES)}",
        *(f"acl denied_networks dst {network}" for network in denied_networks()),
        *(
            f"acl denied_networks dst {address}"
            for address in uncovered(settings.own_addresses, denied_networks())
        ),
        "http_access deny manager",
    ]
    if settings.users_file is not None:
        lines.append("http_access deny !authenticated")
    lines += _closed(settings)
    names = [target for target in settings.allowed_targets if target.network is None]
    networks = [target for target in settings.allowed_targets if target.network is not None]
    for number, target in enumerate(names):
        lines += _allow(f"allowed_name{number}", target)
    # Before anything that looks a name up: a denied name is answered without waiting for that.
    lines.append("http_access deny denied_names")
    for port in dict.fromkeys(target.port for target in networks):
        lines += _beside(port, settings)
    for number, target in enumerate(networks):
        lines += _allow(f"allowed_network{number}", target)
    lines += [
        "http_access deny !web_ports",
        "http_access deny denied_networks",
        "http_access allow all",
    ]
    return tuple(lines)


def _beside(port: int | None, settings: SquidSettings) -> tuple[str, ...]:
    """Name what stays denied when a network is allowed at that port, None being all ports.

    A name has several addresses, and one that matches is enough for an acl: an allowed address
    must not take along what it does not cover.
    """
    denied = (*denied_networks(), *map(ipaddress.ip_network, settings.own_addresses))
    allowed = [
        target.network
        for target in settings.allowed_targets
        if target.network is not None and target.port in (None, port)
    ]
    rest = without(denied, allowed)
    # An acl of squid's must not be empty; no name has the address ::.
    return tuple(f"acl {_beside_name(port)} dst {network}" for network in rest or ("::/128",))


def _beside_name(port: int | None) -> str:
    return "beside_allowed" if port is None else f"beside_allowed_{port}"


def _closed(settings: SquidSettings) -> tuple[str, ...]:
    """Deny the ports that nothing opens; names are looked up for these ports only."""
    if not settings.closed_ports:
        return ()
    own = uncovered(settings.own_addresses, THIS_HOST)
    return (
        f"acl closed_ports port {' '.join(map(str, settings.closed_ports))}",
        *(f"acl this_machine dst {network}" for network in (*THIS_HOST, *own)),
        "http_access deny closed_ports this_machine",
    )


def _allow(name: str, target: AllowedTarget) -> tuple[str, ...]:
    if target.network is None:
        where, besides = f"dstdomain -n {target.name}", ""
    else:
        where, besides = f"dst {target.network}", f" !{_beside_name(target.port)}"
    if target.port is None:
        return (f"acl {name} {where}", f"http_access allow web_ports {name}{besides}")
    return (
        f"acl {name} {where}",
        f"acl {name}_port port {target.port}",
        # The port first: a name is looked up only where that decides.
        f"http_access allow {name}_port {name}{besides}",
    )


_HYGIENE: Final = (
    "via off",
    "forwarded_for delete",
    *(f"request_header_access {name} deny all" for name in _PRIVATE_HEADERS),
    # Squid adds max-age to every request that has neither of these. Where the client sent one
    # its header goes through; else it would not be the client's any more.
    "acl untouched_cache_control req_header Cache-Control -i (max-age|no-cache)",
    "request_header_access Cache-Control allow untouched_cache_control",
    "request_header_access Cache-Control deny all",
    "httpd_suppress_version_string on",
    "global_internal_static off",
    "email_err_data off",
)

_STATELESS: Final = (
    "cache deny all",
    "cache_mem 0",
    "memory_pools off",
    "client_db off",
    "access_log none",
    # Messages go to standard error by the option -d.
    "cache_log /dev/null",
    "cache_store_log none",
    "logfile_rotate 0",
    "pid_filename none",
    "netdb_filename none",
    "pinger_enable off",
    "coredump_dir none",
    "icp_port 0",
    "htcp_port 0",
    "snmp_port 0",
)


def _limits(settings: SquidSettings) -> tuple[str, ...]:
    return (
        f"max_filedescriptors {settings.max_filedescriptors}",
        f"shutdown_lifetime {round(settings.shutdown_lifetime.total_seconds())} seconds",
        "connect_timeout 10 seconds",
        "forward_timeout 30 seconds",
        "request_timeout 30 seconds",
        "read_timeout 5 minutes",
        "client_idle_pconn_timeout 2 minutes",
        "server_idle_pconn_timeout 1 minute",
        "half_closed_clients off",
        # A fetch its client has given up is paid traffic nobody reads.
        "quick_abort_min 0 KB",
        "quick_abort_max 0 KB",
        "dns_timeout 10 seconds",
        "negative_dns_ttl 5 seconds",
    )
