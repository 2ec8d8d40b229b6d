"""A web page to fetch through proxies, and a client that takes a proxy as a URL.

Each page names the address that it was asked from: a proxy with an egress address of its own
(Linux answers on all of 127.0.0.0/8) is known by it.
"""

import json
import ssl
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trustme


class _Page(BaseHTTPRequestHandler):
    timeout = 10
    server: "_Server"

    def do_GET(self) -> None:
        if self.path == "/health" and not self.server.is_well.is_set():
            self.send_error(503)
            return
        page = {"from": self.client_address[0], "path": self.path, "headers": dict(self.headers)}
        body = json.dumps(page).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    context: ssl.SSLContext | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Page)
        self.is_well = threading.Event()
        self.is_well.set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.context is None:
            super().finish_request(request, client_address)
            return
        with self.context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that went away is no fault."""


class Origin:
    """The same page by HTTP and by HTTPS."""

    def __init__(self) -> None:
        authority = trustme.CA()
        server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(server_context)
        self.authority = authority.cert_pem.bytes()
        self._trust = ssl.create_default_context(cadata=self.authority.decode())
        self._plain = _Server()
        self._secure = _Server()
        self._secure.context = server_context
        self._threads = [
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            for server in (self._plain, self._secure)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def port(self) -> int:
        """Where HTTP is served, for whole URLs too: so it passes for a proxy."""
        return self._plain.server_port

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}/page"

    @property
    def health(self) -> str:
        """A page for probes, which fails while `is_well` is not set."""
        return f"http://127.0.0.1:{self._plain.server_port}/health"

    @property
    def is_well(self) -> threading.Event:
        return self._plain.is_well

    @property
    def https(self) -> str:
        return f"https://127.0.0.1:{self._secure.server_port}/page"

    def fetch(self, url: str, proxy: str) -> Any:
        """Return the page, fetched through the proxy at that URL. OSError when it refuses."""
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({"http": proxy, "https": proxy}),
            urllib.request.HTTPSHandler(context=self._trust),
        )
        with opener.open(url, timeout=10) as response:
            return json.loads(response.read())

    def close(self) -> None:
        for server in (self._plain, self._secure):
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join()
