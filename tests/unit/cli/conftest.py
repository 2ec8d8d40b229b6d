"""The commands run in this process, on a store in a temporary directory."""

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proxy_operator.app.client import Home, open_home
from proxy_operator.app.settings import HomeAddress
from proxy_operator.cli.main import execute


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Shell:
    """Runs command lines as a person in one directory would."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str], stdin: Any) -> None:
        self.directory = directory
        self.data_dir = directory / "data"
        self._capsys = capsys
        self._stdin = stdin

    def __call__(self, *words: str, stdin: str = "") -> Ended:
        self._stdin(stdin)
        self._capsys.readouterr()
        code = execute(words)
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return Ended(code, out, err)

    def write(self, name: str, text: str) -> str:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)

    def with_home(self, act: Callable[[Home], Awaitable[Any]]) -> Any:
        """Do something to the store as the operator would."""

        async def run() -> Any:
            async with open_home(HomeAddress(data_dir=self.data_dir)) as home:
                return await act(home)

        return asyncio.run(run())


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Commands set the process's logging up; the next test must not inherit it."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


@pytest.fixture
def shell(tmp_path, capsys, monkeypatch) -> Shell:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [n for n in __import__("os").environ if n.startswith("PROXY_OPERATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DISCOVERY_TOKEN", raising=False)
    monkeypatch.setenv("PROXY_OPERATOR_DATA_DIR", str(tmp_path / "data"))

    def give(text: str) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return Shell(tmp_path, capsys, give)


PROXY = """
apiVersion: crawl.example.com/v1alpha1
kind: Proxy
metadata:
  name: {name}
  labels: {{team: {team}}}
spec:
  provider: local
  attributes: {{region: eu}}
"""
SECRET = """
apiVersion: v1
kind: Secret
metadata: {name: s1, labels: {crawl.example.com/credentials: "true"}}
stringData: {username: crawler, password: hunter2-hunter2}
"""


def a_proxy_text(name: str = "p1", team: str = "a") -> str:
    return PROXY.format(name=name, team=team)
