"""From a host name or address to a connection.

A peer with several addresses is tried as RFC 8305 has it: the next one starts when the one before
failed or is slow, and the first to connect wins.
"""

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, NamedTuple

from proxy_operator.adapters.probing.channel import SocketChannel
from proxy_operator.adapters.probing.fault import FailedProbeError, connect_fault, is_local
from proxy_operator.domain.health import ProbeError

STAGGER: Final = 0.25
"""Seconds before the next address is tried beside a slow one (RFC 8305 section 5)."""
MOST_ADDRESSES: Final = 6


class Address(NamedTuple):
    """Where to connect to: a literal address, with its zone if it has one."""

    host: str
    port: int


class Resolver:
    """Looks host names up with the system's resolver.

    In threads of its own: a name server that does not answer must not hold up the rest of the
    process, and a literal address needs no thread at all.
    """

    def __init__(self, threads: int = 16) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="probe-dns")

    def close(self) -> None:
        """Let the threads end."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def resolve(self, host: str, port: int, peer: str) -> list[Address]:
        """Return the addresses, best first, at least one. FailedProbeError of class dns.

        `peer` is whose name it is, for the clause of a fault.
        """
        if is_literal(host):
            if "%" not in host:
                return [Address(host, port)]
            # Not a look-up: it only reads the literal and its zone.
            return _look_up(host, port, socket.AI_NUMERICHOST, peer)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, _look_up, host, port, 0, peer)


def _look_up(host: str, port: int, flags: int, peer: str) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, UnicodeError) as err:
        reason = (getattr(err, "strerror", None) or "not a valid name").lower()
        raise FailedProbeError(
            ProbeError.DNS, f"the {peer}'s name was not resolved: {reason}"
        ) from err
    addresses = [_address(*sockaddr) for *_, sockaddr in found]
    return list(dict.fromkeys(addresses))[:MOST_ADDRESSES]


def _address(host: str | int, port: int | bytes, _flow: int = 0, zone: int = 0) -> Address:
    # IPv4 sockaddrs have two members, IPv6 ones four; a build without IPv6 gives neither as text.
    return Address(f"{host}%{zone}" if zone else str(host), int(port))


@lru_cache(maxsize=16384)
def is_literal(host: str) -> bool:
    """Tell whether a host is an IPv4 or IPv6 address (without brackets), not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def connect(addresses: list[Address], peer: str) -> SocketChannel:
    """Return an open connection; the caller closes it.

    FailedProbeError of the address that failed last. OSError when this machine cannot connect to
    anything.
    """
    try:
        if len(addresses) == 1:
            return await _connect_one(addresses[0])
        return await _race(addresses)
    except OSError as err:
        if is_local(err):
            raise
        raise connect_fault(err, peer) from err


async def _connect_one(address: Address) -> SocketChannel:
    # Both loops set TCP_NODELAY and close the socket when this is cancelled.
    _, channel = await asyncio.get_running_loop().create_connection(SocketChannel, *address)
    return channel


async def _race(addresses: list[Address]) -> SocketChannel:
    winners: list[SocketChannel] = []
    errors: list[OSError] = []
    settled = asyncio.Event()

    async def attempt(address: Address) -> None:
        try:
            winners.append(await _connect_one(address))
        except OSError as err:
            errors.append(err)
        settled.set()

    try:
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            for address in addresses:
                settled.clear()
                tasks.append(group.create_task(attempt(address)))
                await _wait(settled, STAGGER)
                if winners:
                    break
            while not winners and len(errors) < len(addresses):
                settled.clear()
                await settled.wait()
            for task in tasks:
                task.cancel()
    except BaseException:
        _close(winners)
        raise
    _close(winners[1:])
    if not winners:
        raise errors[-1]
    return winners[0]


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _close(channels: list[SocketChannel]) -> None:
    for channel in channels:
        channel.close()
