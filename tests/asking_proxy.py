"""A forward proxy that wants credentials, and answers every request for a page itself."""

import base64
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    server: "_Server"

    def do_GET(self) -> None:
        login = self.headers.get("Proxy-Authorization", "")
        self.server.asked.append(login)
        self.send_response(200 if login == self.server.wanted else 407)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, wanted: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wanted = wanted
        self.asked: list[str] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away is no fault."""


class AskingProxy:
    """It runs from its making to `close`."""

    def __init__(self, username: str, password: str) -> None:
        login = base64.b64encode(f"{username}:{password}".encode()).decode()
        self.wanted = f"Basic {login}"
        self._server = _Server(self.wanted)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def asked(self) -> list[str]:
        """What each request said of who sent it, in order."""
        return list(self._server.asked)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
