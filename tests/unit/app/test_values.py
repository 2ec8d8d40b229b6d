"""Text to values, at the edges."""

from pathlib import Path

import pytest

from proxy_operator.app.values import (
    choice,
    parse_address,
    parse_cluster_id,
    parse_count,
    parse_gcp_project,
    parse_pair,
    parse_path,
    parse_selector,
    parse_switch,
    parse_token,
    parse_url,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_switch, "TRUE", True),
        (parse_switch, "off", False),
        (parse_count, "999999", 999999),
        (parse_address, "::1", "::1"),
        (parse_url, "http://[::1]:8090/x?y=z", "http://[::1]:8090/x?y=z"),
        (parse_cluster_id, "a" * 63, "a" * 63),
        (parse_gcp_project, "my-project-1", "my-project-1"),
        (parse_gcp_project, "example.com:my-project", "example.com:my-project"),
        (parse_pair, "a=b=c", ("a", "b=c")),
        (parse_pair, "a=", ("a", "")),
        (parse_selector, "a=b, c==d", {"a": "b", "c": "d"}),
        (parse_path, "-", Path("-")),
        (parse_token, "abc.DEF~+/=", "abc.DEF~+/="),
        (choice("a", "b").parse, "b", "b"),
    ],
)
def test_good_text(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_switch, ""),
        (parse_count, "1000000"),
        (parse_count, "٣"),
        (parse_count, "1.5"),
        (parse_address, "localhost"),
        (parse_url, "http://"),
        (parse_url, "http://h:99999/"),
        (parse_url, "http://a b/"),
        (parse_url, "http://[::1"),
        (parse_cluster_id, "-a"),
        *((parse_gcp_project, bad) for bad in ("", "short", "My-project", "a/../b", "projects/a1")),
        (parse_cluster_id, "a" * 64),
        (parse_pair, "=b"),
        (parse_selector, "a!=b"),
        (parse_selector, ""),
        (parse_token, "a b"),
        (parse_token, "a\tb"),
        (choice("a", "b").parse, "c"),
    ],
)
def test_bad_text_is_one_clause(parse, text):
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_credentials_in_a_url_are_refused_without_being_repeated():
    with pytest.raises(ValueError, match="must not carry credentials") as caught:
        parse_url("http://user:s3cret@host/")
    assert "s3cret" not in str(caught.value)


def test_home_is_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/x")
    assert parse_path("~/data") == Path("/home/x/data")
