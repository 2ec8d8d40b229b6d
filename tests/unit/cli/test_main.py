"""The installed command as a process: exit codes, imports, pipes, signals."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from proxy_operator import __version__
from proxy_operator.cli import main as main_module
from proxy_operator.cli.commands import COMMANDS
from tests.unit.cli.conftest import Shell, a_proxy_text

PROGRAM = [sys.executable, "-m", "proxy_operator"]
HEAVY = (
    "aiohttp",
    "asyncio",
    "cel_expr_python",
    "httptools",
    "jsonschema",
    "msgspec",
    "prometheus_client",
    "rich",
    "sqlite3",
    "structlog",
    "uvicorn",
    "uvloop",
    "yaml",
)


@pytest.mark.parametrize("words", [(), *((command.name,) for command in COMMANDS)], ids=str)
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\n"
        "from proxy_operator.cli.main import execute\n"
        f"code = execute({[*words, '--help']!r})\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'imported {heavy}' if heavy else code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("Usage: proxy-operator")
    assert max(map(len, ended.stdout.split("\n"))) <= 100


def test_version(shell: Shell):
    assert shell("--version") == (0, f"proxy-operator {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "clause"),
    [
        (("bogus",), "no such command 'bogus'"),
        (("aply",), "did you mean 'apply'"),
        (("get",), "missing argument"),
        (("get", "proxies", "--nope"), "no such option"),
        (("run",), "no kubernetes cluster is configured"),
        (("run", "--standalone", "--workers", "x"), "--workers (PROXY_OPERATOR_WORKERS): 'x'"),
        (("crd", "x"), "unexpected extra argument"),
    ],
)
def test_a_wrong_line_is_one_sentence_and_exit_code_2(shell: Shell, words, clause):
    ended = shell(*words)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert clause in ended.err.lower() or clause in ended.err
    assert ended.err.count("\n") == 1


def test_a_misspelt_variable_is_said_once(shell: Shell, monkeypatch):
    monkeypatch.setenv("PROXY_OPERATOR_WORKRES", "5")
    monkeypatch.setenv("PROXY_OPERATOR_DEBUG", "")
    # What Kubernetes gives to Pods beside a Service of this name.
    monkeypatch.setenv("PROXY_OPERATOR_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("PROXY_OPERATOR_PORT_8090_TCP_ADDR", "10.0.0.1")
    monkeypatch.setenv("PROXY_OPERATOR_METRICS_SERVICE_PORT_HTTP", "8080")
    ended = shell("crd")
    assert ended.code == 0
    assert ended.err == (
        "warning: the variable PROXY_OPERATOR_WORKRES is unknown and ignored:"
        " did you mean PROXY_OPERATOR_WORKERS?\n"
    )


def test_no_command_prints_the_help(shell: Shell):
    ended = shell()
    assert ended.code == 2
    assert ended.out.startswith("Usage: proxy-operator")


def test_the_crd(shell: Shell):
    ended = shell("crd")
    assert ended.code == 0
    assert "kind: CustomResourceDefinition" in ended.out


def test_an_unexpected_error_is_one_sentence(shell: Shell, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("boom\nsecond line")

    monkeypatch.setattr(main_module, "build_parser", lambda: fail)
    ended = shell("get", "proxies")
    assert ended == (
        1,
        "",
        "error: unexpected RuntimeError: boom second line (PROXY_OPERATOR_DEBUG=1 shows where)\n",
    )


def test_the_traceback_is_there_for_those_who_ask(monkeypatch, capsys):
    def fail(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr(main_module, "build_parser", lambda: fail)
    monkeypatch.setenv("PROXY_OPERATOR_DEBUG", "1")
    assert main_module.execute(["get"]) == 1
    assert "Traceback" in capsys.readouterr().err


def start(*words: str, data_dir: Path, **options) -> "subprocess.Popen[bytes]":
    env = {**os.environ, "PROXY_OPERATOR_DATA_DIR": str(data_dir)}
    return subprocess.Popen([*PROGRAM, *words], env=env, stderr=subprocess.PIPE, **options)


def test_a_reader_that_goes_away_is_no_error(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = start("get", "proxies", data_dir=shell.data_dir, stdout=write_end)
    os.close(write_end)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (141, b"")


def test_a_closed_standard_output_is_no_crash(shell: Shell):
    process = start("--version", data_dir=shell.data_dir, preexec_fn=lambda: os.close(1))
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err


def test_watching_prints_changes_until_interrupted(shell: Shell):
    shell("apply", "-f", "-", stdin=a_proxy_text("p1"))
    process = start("get", "proxies", "-w", data_dir=shell.data_dir, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith(b"NAME")
        assert process.stdout.readline().startswith(b"p1")
        shell("apply", "-f", "-", stdin=a_proxy_text("p2"))
        assert process.stdout.readline().startswith(b"p2")
        shell("delete", "proxy", "p1")
        assert process.stdout.readline().startswith(b"p1")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (130, b"", b"")
