"""Connections that notice a dead peer."""

import socket
from datetime import timedelta

from proxy_operator.adapters.kube import client as client_module
from proxy_operator.adapters.kube.client import Request
from proxy_operator.adapters.kube.sockets import EVERY, IDLE, QUESTIONS, new_socket
from tests.unit.adapters.kube.scripted import Answer, ScriptedApi, served


async def test_a_stream_asks_whether_its_peer_is_there(monkeypatch):
    made = []

    def noted(address: tuple[object, ...]) -> socket.socket:
        made.append(new_socket(address))
        return made[-1]

    monkeypatch.setattr(client_module, "new_socket", noted)
    api = ScriptedApi(Answer(chunks=(b"x",), hangs=True))
    async with (
        served(api) as client,
        client.stream(Request("GET", "/", "it"), silent_for=timedelta(seconds=5)) as content,
    ):
        await content.readany()
        (own,) = made
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        found = [
            own.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        ]
        assert found == [IDLE, EVERY, QUESTIONS]
        api.end()
