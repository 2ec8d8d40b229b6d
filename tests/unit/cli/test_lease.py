"""lease, release and report against an HTTP server that answers as the API does."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from tests.unit.cli.conftest import Shell

GRANTED = {
    "leaseID": "l-1",
    "proxy": {
        "name": "p1",
        "namespace": "default",
        "url": "http://crawler:p%40ss@127.0.0.1:3128",
        "username": "crawler",
        "password": "p@ss",
    },
    "expiresAt": "2026-01-01T00:05:00Z",
    "ttlSeconds": 300,
}


class Api(BaseHTTPRequestHandler):
    """Notes each request and gives the answer that is set."""

    answer: ClassVar[tuple[int, Any, dict[str, str]]] = (201, GRANTED, {})
    seen: ClassVar[list[tuple[str, str, str | None, Any]]] = []

    def handle_any(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        self.seen.append((self.command, self.path, self.headers.get("Authorization"), body))
        status, answer, headers = self.answer
        raw = b"" if answer is None else answer if isinstance(answer, bytes) else _json(answer)
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(raw))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(raw)

    do_POST = do_DELETE = handle_any  # noqa: N815 - the library looks for these names

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture
def api(shell, monkeypatch):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setattr(Api, "seen", [])
    monkeypatch.setattr(Api, "answer", (201, GRANTED, {}))
    monkeypatch.setenv("PROXY_OPERATOR_API", f"http://127.0.0.1:{server.server_port}")
    yield Api
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_url_alone_is_on_standard_output(shell: Shell, api):
    ended = shell("lease")
    assert ended.code == 0
    assert ended.out == "http://crawler:p%40ss@127.0.0.1:3128\n"
    assert ended.err == "lease l-1 on proxy default/p1 until 2026-01-01T00:05:00Z\n"
    assert api.seen == [("POST", "/v1/leases", None, {})]


def test_everything_asked_for_is_sent(shell: Shell, api, monkeypatch):
    monkeypatch.setenv("DISCOVERY_TOKEN", "t0ken")
    words = ["--attr", "region=eu", "--attr", "note=a,b=c", "--target", "example.com"]
    ended = shell("lease", *words, "--ttl", "1m30s", "-n", "crawl", "-o", "json")
    assert json.loads(ended.out) == GRANTED
    assert ended.err == ""
    wanted = {
        "selector": {"region": "eu", "note": "a,b=c"},
        "ttlSeconds": 90,
        "target": "example.com",
        "namespace": "crawl",
    }
    assert api.seen == [("POST", "/v1/leases", "Bearer t0ken", wanted)]


def test_a_token_file_wins_and_may_end_in_a_line_break(shell: Shell, api, monkeypatch):
    monkeypatch.setenv("DISCOVERY_TOKEN", "other")
    file = shell.write("token", "from-file\n")
    assert shell("lease", "--token-file", file).code == 0
    assert api.seen[0][2] == "Bearer from-file"
    ended = shell("lease", "--token-file", str(shell.directory / "nope"))
    assert (ended.code, len(api.seen)) == (1, 1)
    assert "no such file" in ended.err


def test_release_and_report(shell: Shell, api):
    api.answer = (204, None, {})
    assert shell("release", "l-1", "a/b").out == "lease/l-1 released\nlease/a/b released\n"
    ended = shell("report", "l-1", "banned", "--target", "example.com")
    assert ended.out == "lease/l-1 reported banned\n"
    assert shell("report", "l-1", "ok").code == 0
    assert api.seen == [
        ("DELETE", "/v1/leases/l-1", None, None),
        ("DELETE", "/v1/leases/a%2Fb", None, None),
        ("POST", "/v1/leases/l-1/report", None, {"result": "banned", "target": "example.com"}),
        ("POST", "/v1/leases/l-1/report", None, {"result": "ok"}),
    ]
    assert shell("report", "l-1", "fine").code == 2


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            (
                409,
                {
                    "error": "no_match",
                    "message": "m",
                    "considered": 3,
                    "unhealthy": 1,
                    "atCapacity": 2,
                    "inCooldown": 0,
                },
                {"Retry-After": "12"},
            ),
            "free: 1 unhealthy, 2 at capacity, 0 in cooldown; the next is due back in 12s",
        ),
        ((409, {"error": "no_match", "considered": 0}, {}), "no proxy matches"),
        ((401, {"error": "unauthorized", "message": "m"}, {}), "wants a token"),
        ((400, {"error": "invalid_request", "message": "ttlSeconds is 0"}, {}), "ttlSeconds is 0"),
        ((502, b"<html>", {}), "answered 502 and is not a discovery API"),
        ((200, b"[1]", {}), "is not a discovery API"),
        ((200, {}, {}), "something else than a lease"),
        ((201, {**GRANTED, "proxy": 1}, {}), "something else than a lease"),
        ((201, {**GRANTED, "leaseID": "l\x9b2J"}, {}), "something else than a lease"),
        ((400, {"error": {"a": 1}}, {}), "is not a discovery API"),
        ((400, {"error": "bad\x1b[2J", "message": "m\x1b]0;t\x07" * 999}, {}), "m\\x1b]0;t\\x07m"),
        ((200, b"[" * 100_000, {}), "is not a discovery API"),
        ((302, None, {"Location": "http://127.0.0.1:1/"}), "is not a discovery API"),
    ],
)
def test_refusals_are_one_sentence(shell: Shell, api, answer, sentence):
    api.answer = answer
    ended = shell("lease")
    assert ended.code == 1
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert sentence in ended.err
    assert ended.err.removesuffix("\n").isprintable()
    assert len(ended.err) < 3000
    assert len(api.seen) == 1


def test_a_wrong_token_is_not_repeated(shell: Shell, api, monkeypatch):
    monkeypatch.setenv("DISCOVERY_TOKEN", "s3cret")
    api.answer = (401, {"error": "unauthorized", "message": "m"}, {})
    ended = shell("lease")
    assert "refused the token" in ended.err
    assert "s3cret" not in ended.err


def test_what_is_no_http_is_not_repeated(shell: Shell):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"\x1b[2J\x00 garbage\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended = shell("lease", "--api", url)
        thread.join()
    sentence = f"error: {url} does not answer in HTTP and is not a discovery API\n"
    assert ended == (1, "", sentence)


def test_nobody_there(shell: Shell, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    ended = shell("lease", "--api", "http://127.0.0.1:1")
    assert ended.code == 1
    assert ended.err.startswith("error: no answer from the discovery API at http://127.0.0.1:1")
    assert "connection refused" in ended.err
