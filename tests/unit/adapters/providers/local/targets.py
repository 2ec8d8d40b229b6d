"""What a proxy's client and target are made of in these tests: raw sockets, nothing clever."""

import base64
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
TIMEOUT = 30.0


class Seen(NamedTuple):
    """What a target was sent on one connection, up to its answer."""

    raw: bytes
    peer: tuple[str, int]

    @property
    def head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[0]

    @property
    def body(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def headers(self) -> dict[str, str]:
        rows = (line.partition(b":") for line in self.head.split(b"\r\n")[1:])
        return {name.decode().lower(): value.strip().decode() for name, _, value in rows}


def read_until(connection: socket.socket, is_enough: Callable[[bytes], bool]) -> bytes:
    """Read until the bytes are enough or the peer is done."""
    raw = b""
    while not is_enough(raw):
        piece = connection.recv(65536)
        if not piece:
            break
        raw += piece
    return raw


def is_request(raw: bytes) -> bool:
    """Tell whether a whole request has arrived."""
    head, end, body = raw.partition(b"\r\n\r\n")
    if not end:
        return False
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        return body.endswith(b"0\r\n\r\n")
    length = lower.partition(b"content-length:")[2].partition(b"\r\n")[0].strip()
    return len(body) >= int(length or b"0")


class Target:
    """A server that notes each connection's request and gives one answer."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.host = host
        self.port: int = self._listener.getsockname()[1]
        self.seen: list[Seen] = []
        self.answer = OK
        self.linger = 0.0
        """How long the connection stays open after the answer, and reads on."""
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def authority(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection, peer), daemon=True).start()

    def _serve(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(TIMEOUT)
            raw = read_until(connection, is_request)
            self.seen.append(Seen(raw, peer))
            connection.sendall(self.answer)
            if self.linger:
                connection.settimeout(self.linger)
                with contextlib.suppress(TimeoutError):
                    rest = read_until(connection, bool)
                    self.seen.append(Seen(rest, peer))


@contextlib.contextmanager
def a_target(host: str = "127.0.0.1") -> Iterator[Target]:
    target = Target(host)
    try:
        yield target
    finally:
        target.close()


def basic(username: str, password: str, charset: str = "utf-8") -> bytes:
    code = base64.b64encode(f"{username}:{password}".encode(charset))
    return b"Proxy-Authorization: Basic " + code + b"\r\n"


@contextlib.contextmanager
def connected(port: int, host: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.create_connection((host, port), timeout=TIMEOUT) as client:
        yield client


def exchange(port: int, raw: bytes) -> bytes:
    """Send bytes to a proxy and return everything it answers until it closes."""
    with connected(port) as client:
        client.sendall(raw)
        return read_until(client, lambda _: False)


def get(port: int, target: Target, extra: bytes = b"") -> bytes:
    """Fetch `/` of a target through a proxy, as a client with a fresh connection."""
    authority = target.authority.encode()
    return exchange(
        port,
        b"GET http://%b/x?a=b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (authority, authority, extra),
    )


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def pause(seconds: float) -> None:
    """Let real time pass for another process; bounded, and only where nothing can be polled."""
    threading.Event().wait(seconds)
