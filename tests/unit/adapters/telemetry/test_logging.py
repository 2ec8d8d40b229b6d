"""Records of stdlib logging come out as JSON lines, or for people; never with a secret."""

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from proxy_operator.adapters.telemetry.logging import set_up_logging

logger = logging.getLogger("proxy_operator.some.module")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def logged(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_record_is_one_json_line_with_its_fields():
    stream = io.StringIO()
    set_up_logging("info", stream=stream)
    logger.info("granted %s of %d", "one", 2, extra={"proxy": "default/p1", "seconds": 1.5})
    (line,) = logged(stream)
    assert list(line)[:4] == ["time", "level", "logger", "message"]
    assert str(line.pop("time")).endswith("Z")
    assert line == {
        "level": "info",
        "logger": "proxy_operator.some.module",
        "message": "granted one of 2",
        "proxy": "default/p1",
        "seconds": 1.5,
    }


def test_a_terminal_is_not_steered_by_what_is_logged():
    stream = Terminal()
    set_up_logging("info", stream=stream)
    logger.warning("said\x1b[2J", extra={"reason": "no\x1b[2J"}, exc_info=ValueError("boom\x1b[2J"))
    text = stream.getvalue()
    assert "\x1b[2J" not in text
    for word in ("said", "no", "boom"):
        assert f"{word}\\x1b[2J" in text


def test_a_terminal_gets_text_without_our_logger_names():
    stream = Terminal()
    set_up_logging("info", stream=stream)
    logger.warning("low on proxies", extra={"left": 3})
    text = stream.getvalue()
    assert "low on proxies" in text
    assert "left" in text
    assert "proxy_operator.some" not in text
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


@pytest.mark.parametrize("stream_type", [io.StringIO, Terminal])
def test_no_secret_comes_out_of_message_fields_or_traceback(stream_type):
    stream = stream_type()
    set_up_logging("debug", stream=stream)
    password = "pw" + "-s3cret"
    try:
        int(f"http://u:{password}@h:1")
    except ValueError:
        logger.exception(
            "failed at %s",
            f"http://u:{password}@h:1/",
            extra={"password": password, "request": {"Authorization": f"Basic {password}"}},
        )
    text = stream.getvalue()
    assert "ValueError" in text
    assert "Traceback" in text
    assert "s3cret" not in text


def test_levels_filter_and_chatty_libraries_are_held_back():
    stream = io.StringIO()
    set_up_logging("info", stream=stream)
    logger.debug("hidden")
    logging.getLogger("uvicorn.access").info("hidden")
    logging.getLogger("uvicorn.error").error("shown")
    logger.info("shown")
    assert [line["message"] for line in logged(stream)] == ["shown", "shown"]


def test_debug_shows_everything():
    stream = io.StringIO()
    set_up_logging("debug", stream=stream)
    logging.getLogger("aiohttp.access").info("shown")
    logger.debug("shown")
    assert len(logged(stream)) == 2


def test_setting_up_twice_leaves_one_handler():
    first, second = io.StringIO(), io.StringIO()
    set_up_logging("info", stream=first)
    set_up_logging("info", stream=second)
    logger.info("once")
    assert not first.getvalue()
    assert len(logged(second)) == 1


def test_an_unknown_level_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="log level 'loud' is unknown: use one of debug, info"):
        set_up_logging("loud")


def test_values_json_does_not_know_and_warnings_are_logged():
    stream = io.StringIO()
    set_up_logging("info", stream=stream)
    logger.info("odd", extra={"thing": {1}, "key": object})
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", UserWarning, stacklevel=1)
    lines = logged(stream)
    assert lines[0]["thing"] == [1]
    assert "old" in str(lines[1]["message"])
