"""The entry point: runs a command and turns every way it can end into an exit code.

0 is success, 1 a failure, 2 a wrong command line, 130 Ctrl-C, 141 a reader that went away.
Errors are sentences on standard error; a traceback only with PROXY_OPERATOR_DEBUG=1.
"""

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

import typer

from proxy_operator.app.given import SettingError
from proxy_operator.cli.invocation import CommandError, ReaderGoneError, UsageError
from proxy_operator.cli.output import say
from proxy_operator.cli.parser import build_parser

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line of this process and exit."""
    sys.exit(execute(sys.argv[1:] if args is None else args))


def execute(args: Sequence[str]) -> int:
    """Run one command line and return its exit code. Never raises."""
    try:
        code = _dispatch(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except (ReaderGoneError, BrokenPipeError):
        # Python flushes standard output once more at exit; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    return code


def _dispatch(args: Sequence[str]) -> int:
    try:
        code = build_parser()(list(args), prog_name="proxy-operator", standalone_mode=False)
    except ReaderGoneError:
        raise
    except SystemExit as err:
        return err.code if isinstance(err.code, int) else EXIT_FAILURE
    except Exception as err:  # noqa: BLE001 - the last one to see it
        return _failed(_first(err))
    return code if isinstance(code, int) else 0


def _first(err: Exception) -> Exception:
    """Return what made a group of tasks fail, or the error itself."""
    while isinstance(err, ExceptionGroup):
        err = err.exceptions[0]
    return err


def _failed(err: Exception) -> int:
    if isinstance(err, SettingError | UsageError):
        return _say(EXIT_USAGE, str(err))
    if isinstance(err, CommandError):
        return _say(EXIT_FAILURE, *err.messages)
    if isinstance(err, typer.TyperException):
        return _usage(err)
    if os.environ.get("PROXY_OPERATOR_DEBUG"):
        traceback.print_exception(err)
        return EXIT_FAILURE
    from proxy_operator.app.faults import sentences_of  # noqa: PLC0415 - keeps --help light

    return _say(EXIT_FAILURE, *sentences_of(err))


def _say(code: int, *messages: str) -> int:
    for message in messages:
        say(f"error: {' '.join(message.split())}")
    return code


def _usage(err: typer.TyperException) -> int:
    text = err.format_message()
    if text.startswith("Usage:"):
        sys.stdout.write(f"{text}\n")
        return EXIT_USAGE
    text = text.rstrip(".")
    return _say(EXIT_USAGE, f"{text[:1].lower()}{text[1:]} (see proxy-operator --help)")
