"""A Compute Engine to try the operator on: `python -m tests.fakes.compute --port 8085 --proxies`.

Prints how to use it, then serves until Ctrl-C.
"""

import argparse
import asyncio
import contextlib
import sys
from datetime import timedelta
from random import Random

from proxy_operator.runtime.clock import SystemClock
from tests.fakes.compute.conduct import ZONES, Conduct, Timing
from tests.fakes.compute.faults import (
    Delay,
    FailOperation,
    Faults,
    LoseReply,
    LoseRequest,
    Refuse,
)
from tests.fakes.compute.proxies import PREFIX, Proxies
from tests.fakes.compute.refusals import forbidden, quota_exceeded, rate_limited, unavailable
from tests.fakes.compute.server import Server, serving
from tests.fakes.compute.service import Service
from tests.fakes.compute.strangers import PROJECT
from tests.fakes.compute.tokens import Tokens
from tests.fakes.compute.world import World

_REFUSALS = {
    "quota": quota_exceeded(),
    "rate": rate_limited(),
    "forbidden": forbidden(),
    "unavailable": unavailable(),
}


def arguments() -> argparse.ArgumentParser:
    """Return the switches."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fakes.compute", description="A Compute Engine to try things on."
    )
    add = parser.add_argument
    add("--port", type=int, default=8085, help="where to listen on 127.0.0.1 (8085; 0 is any)")
    add("--proxies", action="store_true", help="let running instances be real forward proxies")
    add("--proxy-port", type=int, default=3128, help="their port, unless user data has http_port")
    add("--boot", type=_seconds, default="8", help="seconds from insert to RUNNING (8)")
    add("--nat-delay", type=_seconds, default="0", help="seconds from RUNNING to an address (0)")
    add("--stop", type=_seconds, default="10", help="seconds from delete to gone (10)")
    add("--zone", action="append", default=[], metavar="ZONE[=ROOM]", help="a zone, repeatable")
    add("--quota", type=int, help="instances per project")
    add("--page-size", type=int, default=500, help="the most instances of one page (500)")
    add("--unreachable", action="append", default=[], metavar="ZONE", help="answers nothing")
    add("--operation-error", metavar="CODE", help="inserts fail so, after --operation-error-after")
    add("--operation-error-after", type=_seconds, default="5", help="seconds (5)")
    add("--refuse", choices=sorted(_REFUSALS), help="a share of the calls gets this error")
    add("--refuse-share", type=float, default=1.0, help="which share (1.0)")
    add("--lose-replies", type=float, default=0.0, metavar="SHARE", help="done, and unanswered")
    add("--lose-requests", type=float, default=0.0, metavar="SHARE", help="undone and unanswered")
    add("--delay", type=_seconds, default="0", help="seconds before every answer (0)")
    add("--require-token", action="store_true", help="401 without a token of this server")
    add("--token-delay", type=_seconds, default="0", help="seconds until a token comes (0)")
    add("--token-failures", type=int, default=0, help="how many tokens are refused; -1 is all")
    add("--allow-version-header", action="store_true", help="as the official client sends it")
    add("--seed", type=int, default=0, help="of what happens by chance (0)")
    return parser


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))


def conduct_of(options: argparse.Namespace) -> Conduct:
    """Return the cloud's inventory and rules."""
    zones: dict[str, int | None] = {}
    for text in options.zone or ZONES:
        zone, _, room = text.partition("=")
        zones[zone] = int(room) if room else None
    conduct = Conduct(
        timing=Timing(
            appears=min(Timing.appears, options.boot),
            stages=min(Timing.stages, options.boot),
            runs=options.boot,
            nat_ip=options.nat_delay,
            stop=options.stop,
        ),
        zones=zones,
        quota=options.quota,
        page_size=options.page_size,
        unreachable=set(options.unreachable),
    )
    if options.proxies:
        conduct.ip_prefix = PREFIX
    return conduct


def faults_of(options: argparse.Namespace) -> Faults:
    """Return the rules that the switches name."""
    faults = Faults(Random(options.seed))  # chance, not secrecy
    if options.delay:
        faults.add(Delay(after=options.delay))
    if options.operation_error:
        faults.add(FailOperation(options.operation_error, options.operation_error_after))
    if options.refuse:
        faults.add(Refuse(_REFUSALS[options.refuse]), chance=options.refuse_share)
    if options.lose_replies:
        faults.add(LoseReply(), chance=options.lose_replies)
    if options.lose_requests:
        faults.add(LoseRequest(), chance=options.lose_requests)
    return faults


async def main(options: argparse.Namespace) -> None:
    """Serve until cancelled."""
    clock = SystemClock()
    world = World(clock, conduct_of(options), faults_of(options))
    tokens = Tokens(clock, is_required=options.require_token, delay=options.token_delay)
    tokens.failures = options.token_failures
    service = Service(world, tokens, allows_version_header=options.allow_version_header)
    async with serving(Server(service, clock), "127.0.0.1", options.port) as address:
        host = address.removeprefix("http://")
        sys.stdout.write(
            f"proxy-operator run --gcp-project {PROJECT} --gcp-endpoint {address} …\n"
            f"tokens: GCE_METADATA_HOST={host} GCE_METADATA_IP={host}\n"
            f"zones: {', '.join(world.conduct.zones)}\n"
        )
        sys.stdout.flush()
        if options.proxies:
            await Proxies(world, options.proxy_port).run()
        await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(arguments().parse_args()))
