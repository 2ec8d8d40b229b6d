"""Renders every log record, ours and the libraries', to stderr: JSON lines, or colours for people.

The rule: records come from stdlib `logging` and fields from `extra`; redaction is the last step
before rendering, so that nothing is added behind it.
"""

import logging
import sys
from typing import Any, Final, TextIO

import structlog
from structlog.types import EventDict, Processor

from proxy_operator.adapters.telemetry.redaction import redact_event
from proxy_operator.runtime.text import plain_lines

LEVELS: Final = ("debug", "info", "warning", "error")
FORMATS: Final = ("auto", "console", "json")

_NOISY: Final = ("asyncio", "uvicorn.error", "uvicorn.access", "aiohttp.access")


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that setting up twice replaces it and leaves other handlers alone."""


def set_up_logging(level: str = "info", form: str = "auto", stream: TextIO | None = None) -> None:
    """Send all records of at least `level` to the stream (stderr).

    The form `auto` is for people on a terminal, else JSON. Libraries that are chatty at info
    speak from warning on, unless the level is debug. ValueError when level or form is unknown.
    """
    if form not in FORMATS:
        raise ValueError(f"log format {form!r} is unknown: use one of {', '.join(FORMATS)}")
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is unknown: use one of {', '.join(LEVELS)}")
    out = sys.stderr if stream is None else stream
    handler = _Handler(out)
    is_console = form == "console" or (form == "auto" and out.isatty())
    handler.setFormatter(_formatter(is_terminal=is_console))
    root = logging.getLogger()
    for old in [h for h in root.handlers if isinstance(h, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else logging.WARNING)
    logging.captureWarnings(capture=True)


def _formatter(*, is_terminal: bool) -> logging.Formatter:
    before: list[Processor] = [
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(
            fmt="%H:%M:%S" if is_terminal else "iso", utc=not is_terminal, key="time"
        ),
        structlog.processors.StackInfoRenderer(),
        # Locals are not shown: they hold passwords.
        structlog.processors.format_exc_info,
    ]
    last: list[Processor] = (
        [_for_people, redact_event, _plain, _console()]
        if is_terminal
        else [_for_machines, redact_event, structlog.processors.JSONRenderer(default=str)]
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )


def _console() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        timestamp_key="time", exception_formatter=structlog.dev.plain_traceback, pad_event_to=40
    )


def _for_people(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Leave out what only a machine asks for."""
    name = str(event.pop("logger", ""))
    if not name.startswith("proxy_operator"):
        event["logger"] = name
    return event


def _plain(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Let nothing that others said steer the terminal. What is no text the renderer quotes."""
    return {
        name: plain_lines(value) if isinstance(value, str) else value
        for name, value in event.items()
    }


def _for_machines(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Put the common fields first, under the names log collectors know."""
    first: dict[str, Any] = {
        "time": event.pop("time"),
        "level": event.pop("level"),
        "logger": event.pop("logger", ""),
        "message": event.pop("event"),
    }
    return {**first, **event}
