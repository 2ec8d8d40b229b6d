"""Failed connections in words."""

import asyncio
import socket
import ssl

import aiohttp
import pytest
import trustme

from proxy_operator.adapters.kube.unreachable import reason_of


async def failure(url: str, **how: object) -> str:
    """Return what is said of a request that cannot be made."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises((aiohttp.ClientError, OSError)) as caught:
            await session.get(url, **how)  # type: ignore[arg-type] # any option of a request
        # Transports close in the loop's next turns.
        await asyncio.sleep(0.01)
    assert isinstance(caught.value, aiohttp.ClientError | OSError)
    return reason_of(caught.value)


async def test_a_port_that_nobody_listens_on():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port = holder.getsockname()[1]
        said = await failure(f"https://127.0.0.1:{port}")
    assert said == f"127.0.0.1:{port}: connection refused"


async def test_a_name_that_nobody_has():
    said = await failure("https://nobody.invalid:6443")
    assert said.startswith("nobody.invalid:6443: ")
    assert "ssl" not in said


async def answering(line: bytes, context: ssl.SSLContext | None = None) -> asyncio.Server:
    """Return a server that says one thing and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(line)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)


def port_of(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"", "127.0.0.1:{}: "),
        (b"HTTP/1.1 400 No\r\n\r\n", "127.0.0.1:{}: no TLS: "),
    ],
    ids=["closed", "plain"],
)
async def test_a_server_without_tls(line: bytes, said: str):
    async with await answering(line) as server:
        port = port_of(server)
        got = await failure(f"https://127.0.0.1:{port}")
    assert got.startswith(said.format(port))
    assert "object at" not in got
    assert "none" not in got.lower()


async def test_a_certificate_of_somebody_else():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with await answering(b"", context) as server:
        port = port_of(server)
        said = await failure(f"https://127.0.0.1:{port}")
    assert said.startswith(f"127.0.0.1:{port}: its certificate is not accepted: ")


@pytest.mark.parametrize("line", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_an_answer_that_breaks_off(line: bytes):
    async with await answering(line) as server, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError) as caught:
            async with session.get(f"http://127.0.0.1:{port_of(server)}") as answer:
                await answer.read()
    assert reason_of(caught.value) in {"the connection broke", "connection reset by peer"}
