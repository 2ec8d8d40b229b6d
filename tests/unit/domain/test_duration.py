from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy_operator.domain.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0s", timedelta()),
        ("250ms", timedelta(milliseconds=250)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("1m1m", timedelta(minutes=2)),
    ],
)
def test_parse(text, span):
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    "text", ["", "5", "s", "-5s", "5 s", "1d", "5s\n", "\uff15s", "5S", "1,5s"]
)
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="write a number and a unit, such as 90s or 5m"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["999999999999h", "9" * 400 + "h"])
def test_too_long(text):
    with pytest.raises(ValueError, match="too long"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(seconds=300), "5m"),
        (timedelta(hours=25, milliseconds=5), "25h5ms"),
        (timedelta(microseconds=400), "0s"),
        (timedelta(microseconds=-400), "0s"),
        (timedelta(seconds=-90), "-1m30s"),
    ],
)
def test_format(span, text):
    assert format_duration(span) == text


@given(st.integers(0, 10**10))
def test_what_is_written_can_be_read(millis):
    span = timedelta(milliseconds=millis)
    assert parse_duration(format_duration(span)) == span
