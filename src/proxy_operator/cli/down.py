"""`down`: delete every Proxy, and wait until no instance is left where one can be looked for."""

import asyncio
from datetime import timedelta

from proxy_operator.app.client import open_home
from proxy_operator.app.given import read_options
from proxy_operator.app.homes import take_down
from proxy_operator.app.leaving import names_of, reason_for_all
from proxy_operator.app.serving import loop_factory
from proxy_operator.app.settings import Settings
from proxy_operator.cli.console import Console
from proxy_operator.cli.invocation import CommandError, Invocation
from proxy_operator.domain.proxy import Proxy


def run(invocation: Invocation) -> int:
    """Delete everything; an operator that runs does the work, else this process does."""
    limit = read_options("down", invocation.flags, invocation.environ)["timeout"]
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_down(invocation.settings(), limit))
    return 0


async def _down(settings: Settings, limit: timedelta | None) -> None:
    console = Console()
    try:
        async with asyncio.timeout(limit.total_seconds() if limit else None):
            searched = await take_down(settings, console)
    except TimeoutError:
        raise CommandError(await _timed_out(settings)) from None
    namespace = settings.watch_namespace
    gone = f"in namespace {namespace} no Proxy is left" if namespace else "no Proxy is left"
    if searched.unseen:
        raise CommandError(
            f"{gone}, but nobody looked for instances of {', '.join(searched.unseen)}:"
            " mend what is said above and run `down` again"
        )
    where = f", and no instance at {', '.join(searched.empty)}" if searched.empty else ""
    console.line(f"{gone}{where}")


async def _timed_out(settings: Settings) -> str:
    async with open_home(settings.home) as home:
        left = (await home.client.list(Proxy, namespace=settings.watch_namespace)).items
    if not left:
        return "timed out: no Proxy is left, but instances may be; run `down` again"
    names = names_of(left)
    return f"timed out while waiting for {names} to go{reason_for_all(left)}; run `down` again"
