"""Whatever somebody else wrote, the terminal is not steered by it."""

import json

import pytest
import yaml

from tests.unit.cli.conftest import Shell, a_proxy_text

EVIL = "\x1b[2J\x9b31m\u202e"
MANIFESTS = {
    "name": {"kind": "Proxy", "metadata": {"name": EVIL}},
    "namespace": {"kind": "Proxy", "metadata": {"name": "a", "namespace": EVIL}},
    "kind": {"kind": EVIL, "metadata": {"name": "a"}},
    "version": {"kind": "Proxy", "apiVersion": EVIL, "metadata": {"name": "a"}},
    "field": {"kind": "Proxy", "metadata": {"name": "a", EVIL: EVIL}, EVIL: EVIL},
    "long": {"kind": "Proxy", "metadata": {"name": EVIL * 100_000}},
}


def assert_plain(text: str) -> None:
    assert text
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("fault", MANIFESTS)
def test_manifests(shell: Shell, fault: str):
    body = {"apiVersion": "crawl.example.com/v1alpha1", "spec": {}, **MANIFESTS[fault]}
    for command in ("apply", "delete"):
        ended = shell(command, "-f", "-", stdin=json.dumps(body))
        assert ended.code != 0
        assert_plain(ended.err)
        if command == "apply":
            assert len(ended.err) < 10_000


@pytest.mark.parametrize(
    "words",
    [
        (EVIL,),
        ("apply", "-f", EVIL),
        ("get", EVIL),
        ("get", "proxies", f"--{EVIL}"),
        ("get", "proxy", EVIL),
        ("describe", "proxy", EVIL),
        ("delete", "proxy", EVIL),
        ("report", EVIL, EVIL),
        ("get", "proxies", "--data-dir", EVIL),
        ("lease", "--api", f"http://{EVIL}"),
        ("lease", "--api", "http://127.0.0.1:1", "--token-file", EVIL),
    ],
    ids=" ".join,
)
def test_arguments(shell: Shell, words: tuple[str, ...]):
    shell("apply", "-f", "-", stdin=a_proxy_text())
    ended = shell(*words)
    assert ended.code in {1, 2}
    assert_plain(ended.err)


def test_documents_are_escaped_in_their_own_way(shell: Shell):
    text = a_proxy_text().replace(
        "labels:", f"annotations: {{note: {json.dumps(EVIL)}}}\n  labels:"
    )
    assert shell("apply", "-f", "-", stdin=text).code == 0
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        shown = shell("get", "proxy", "p1", "-o", form).out
        assert_plain(shown)
        assert read(shown)["metadata"]["annotations"] == {"note": EVIL}
    assert_plain(shell("describe", "proxy", "p1").out)
