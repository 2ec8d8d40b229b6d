"""A web page that says how it was asked, by HTTP on 8080 and by HTTPS on 8443.

Runs in a Pod, from its source: the standard library only. Never imported.
"""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Page(BaseHTTPRequestHandler):
    timeout = 30

    def do_GET(self) -> None:
        page = {"from": self.client_address[0], "path": self.path, "headers": self.headers.items()}
        body = json.dumps(page).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


class Secure(Page):
    def setup(self) -> None:
        # Here, in a thread of its own, a slow handshake holds up nobody.
        self.request = context.wrap_socket(self.request, server_side=True)
        super().setup()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/certificate/pem")
plain = ThreadingHTTPServer(("", 8080), Page)
threading.Thread(target=plain.serve_forever, daemon=True).start()
ThreadingHTTPServer(("", 8443), Secure).serve_forever()
