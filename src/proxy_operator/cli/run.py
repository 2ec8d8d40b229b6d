"""`run`: the operator in the foreground, and the session --apply and --down-on-exit ask for."""

import shlex
import sys
from pathlib import Path
from typing import Final

from proxy_operator.app.client import open_home
from proxy_operator.app.manifests import Manifest, read_manifests
from proxy_operator.app.serving import Listening, serve
from proxy_operator.app.session import apply_and_tell, follow_until_ready, tear_down
from proxy_operator.app.settings import Settings
from proxy_operator.app.standalone import run as run_standalone
from proxy_operator.cli.console import Console
from proxy_operator.cli.invocation import Invocation

_DEFAULT_API: Final = "127.0.0.1:8090"


def run(invocation: Invocation) -> int:
    """Serve until a signal; 0 after a graceful end."""
    settings = invocation.settings()
    manifests: list[Manifest] = []
    if settings.session.manifests:
        manifests = read_manifests(settings.session.manifests, namespace=None)
    serve(settings, run_standalone, RunSession(settings, manifests, Console()))
    return 0


class RunSession:
    """Applies and follows after the start, deletes before the end: as the settings say."""

    def __init__(self, settings: Settings, manifests: list[Manifest], console: Console) -> None:
        self._settings = settings
        self._manifests = manifests
        self._console = console

    async def begin(self, listening: Listening) -> None:
        """Apply the manifests, follow their proxies, say what can be done next."""
        if not self._manifests:
            return
        self._console.line(f"the operator runs on {self._settings.data_dir}")
        async with open_home(self._settings.data_dir) as home:
            keys = await apply_and_tell(home, self._manifests, self._console)
            await follow_until_ready(home, keys, self._console)
        self._console.line(
            f"all {len(keys)} proxies are Ready; the API is at {listening.discovery}"
        )
        for line in next_commands(self._settings.data_dir, str(listening.discovery)):
            self._console.line(line)

    async def end(self) -> None:
        """Delete every Proxy, where that was asked for."""
        if not self._settings.session.down_on_exit:
            return
        self._console.line("deleting every Proxy; a second Ctrl-C stops at once")
        async with open_home(self._settings.data_dir) as home:
            await tear_down(home, self._console, namespace=self._settings.watch_namespace)
        self._console.line("no Proxy is left")


def next_commands(data_dir: Path, api: str) -> list[str]:
    """Return lines that show a newcomer what to type in another terminal."""
    program = shlex.quote(sys.argv[0])
    store = f" --data-dir {shlex.quote(str(data_dir))}"
    where = "" if api == _DEFAULT_API else f" --api http://{api}"
    return [
        "",
        "Try in another terminal:",
        f"  {program} get proxies -o wide{store}",
        f"  {program} lease --attr region=eu{where}",
        f'  curl -x "$({program} lease --attr region=eu{where})" http://{api}/healthz',
        f"  {program} describe proxy local-open{store}",
        f"  {program} delete proxy local-auth{store}",
        "Ctrl-C here deletes every Proxy and stops.",
    ]
