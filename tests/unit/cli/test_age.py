"""Spans as kubectl writes them."""

from datetime import timedelta

import pytest

from proxy_operator.cli.age import format_age, format_span
from tests.builders import EPOCH


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(seconds=-5), "0s"),
        (timedelta(milliseconds=999), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(minutes=5, seconds=3), "5m3s"),
        (timedelta(minutes=9, seconds=59), "9m59s"),
        (timedelta(minutes=10, seconds=59), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=8, minutes=59), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=5, hours=3), "5d3h"),
        (timedelta(days=8, hours=3), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=730), "2y"),
        (timedelta(days=3 * 365 + 20), "3y20d"),
        (timedelta(days=9 * 365 + 20), "9y"),
    ],
)
def test_spans(span, text):
    assert format_span(span) == text


def test_an_unknown_age():
    assert format_age(None, EPOCH) == "<unknown>"
    assert format_age(EPOCH, EPOCH + timedelta(seconds=4)) == "4s"
