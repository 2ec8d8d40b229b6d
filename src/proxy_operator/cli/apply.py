"""`apply`: make objects exist as their manifests say."""

import asyncio
import shlex
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from proxy_operator.app.applying import apply_all
from proxy_operator.app.client import open_home
from proxy_operator.app.manifests import read_manifests
from proxy_operator.cli.home_options import HomeOptions
from proxy_operator.cli.invocation import Invocation, UsageError
from proxy_operator.cli.output import print_line, say
from proxy_operator.cli.resources import resource_of


@dataclass(frozen=True, kw_only=True)
class Options(HomeOptions):
    """Options of apply."""

    filename: tuple[Path, ...]


def run(invocation: Invocation) -> int:
    """Apply what -f names."""
    options = invocation.options(Options)
    if not options.filename:
        raise UsageError(
            "say what to apply: -f FILE, -f DIRECTORY or -f - (PROXY_OPERATOR_FILENAME)"
        )
    asyncio.run(_apply(options))
    return 0


async def _apply(options: Options) -> None:
    manifests = read_manifests(
        options.filename, namespace=options.namespace, default=options.named_namespace
    )
    async with (
        open_home(options.home, create=True) as home,
        aclosing(apply_all(home, manifests)) as answers,
    ):
        async for applied in answers:
            resource = resource_of(applied.object)
            print_line(f"{resource.qualified}/{applied.object.metadata.name} {applied.outcome}")
        if not home.is_operator_running():
            place = shlex.quote(str(options.data_dir))
            say(
                f"no operator runs on {options.data_dir}, so what was applied waits: start"
                f" `proxy-operator run --standalone --data-dir {place}`"
            )
