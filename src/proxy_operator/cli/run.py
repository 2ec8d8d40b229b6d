"""`run`: the operator in the foreground, and the session --apply and --down-on-exit ask for."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from proxy_operator.app.client import open_home
from proxy_operator.app.homes import operator_of
from proxy_operator.app.manifests import Manifest, read_manifests
from proxy_operator.app.serving import Listening, serve
from proxy_operator.app.session import apply_and_tell, follow_until_ready, tear_down
from proxy_operator.app.settings import Settings
from proxy_operator.cli.console import Console
from proxy_operator.cli.invocation import Invocation

_DEFAULT_API: Final = "127.0.0.1:8090"
_DEFAULT_DATA_DIR: Final = Path("data")


def run(invocation: Invocation) -> int:
    """Serve until a signal; 0 after a graceful end."""
    settings = invocation.settings()
    manifests: list[Manifest] = []
    if settings.session.manifests:
        manifests = read_manifests(settings.session.manifests, namespace=None)
    serve(settings, operator_of(settings), RunSession(settings, manifests, Console()))
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
        self._console.line(f"proxy-operator runs on {self._settings.home}")
        async with open_home(self._settings.home) as home:
            keys = await apply_and_tell(home, self._manifests, self._console)
            await follow_until_ready(home, keys, self._console)
        if not keys:
            return
        self._console.line(f"{len(keys)} of {len(keys)} proxies are Ready")
        for line in self._next_commands(listening, keys[0].name):
            self._console.line(line)

    async def end(self) -> None:
        """Delete every Proxy, where that was asked for."""
        if not self._settings.session.down_on_exit:
            return
        self._console.line("deleting every Proxy (a second signal stops at once)")
        async with open_home(self._settings.home) as home:
            await tear_down(home, self._console, namespace=self._settings.watch_namespace)
        self._console.line("no Proxy is left")

    def _next_commands(self, listening: Listening, name: str) -> Iterator[str]:
        """Yield lines that show a newcomer what to type in another terminal."""
        program, api = _program(), str(listening.discovery)
        page = f"http://{listening.health_probe}/healthz"
        is_default = self._settings.data_dir == _DEFAULT_DATA_DIR
        store = "" if is_default else f" --data-dir {shlex.quote(str(self._settings.data_dir))}"
        where = "" if api == _DEFAULT_API else f" --api http://{api}"
        yield ""
        yield "Try, in another terminal in this directory:"
        yield f"  {program} get proxies -o wide{store}"
        yield f'  URL=$({program} lease{where}) && curl -x "$URL" {page}'
        yield f"  {program} report LEASE_ID banned{where}"
        yield f"  {program} describe proxy {name}{store}"
        yield f"  {program} delete proxy {name}{store}"
        yield ""
        if self._settings.session.down_on_exit:
            yield "Ctrl-C deletes every Proxy, waits until their instances are gone, and stops."
        else:
            yield "Ctrl-C stops the operator and leaves the proxies running."


def _program() -> str:
    """Return what to type for this program, here."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return "python -m proxy_operator"
    if path.is_relative_to(Path.cwd()):
        return shlex.quote(str(path.relative_to(Path.cwd())))
    return shlex.quote(str(path))
