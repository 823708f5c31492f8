"""What is refused before there is a request, on a real listener: the same body, and no connection held for ever."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.server import protocol
from omnigraph.server.protocol import Protocol
from server.asgi import JSON, Reply, refused, sound
from server.conftest import SCHEMA
from server.processes import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("cluster")
    omnigraph.init(root / "graphs" / "atlas.omni", schema=SCHEMA)
    with running(root) as server:
        yield server
        assert server.stopped() == 0
        assert not [event for event in server.events() if event["level"] == "error"]


def received(connection: socket.socket, *, until_closed: bool = True) -> bytes:
    data = b""
    while part := connection.recv(65_536):
        data += part
        if not until_closed and b"\r\n\r\n" in data:
            head, _, body = data.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            if len(body) >= length:
                break
    return data


def answers(data: bytes) -> list[Reply]:
    found: list[Reply] = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = [line.partition(":")[::2] for line in lines]
        assert len({name.lower() for name, _ in pairs}) == len(pairs), "no header twice"
        headers = {name.lower(): value.strip() for name, value in pairs}
        length = int(headers["content-length"])
        found.append(Reply(int(first.split()[1]), headers, [rest[:length]], True))
        data = rest[length:]
    return found


def exchanged(server: Running, data: bytes) -> Reply:
    with server.connect() as connection:
        connection.sendall(data)
        [reply] = answers(received(connection))
        return sound(reply)


HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"a b: c\r\n\r\n",
        b"GET /gr\xc3\xb6\xc3\x9fe HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_get_the_one_error_body(server: Running, data: bytes) -> None:
    reply = exchanged(server, data)
    assert reply.status in (400, 501)
    refused(reply, 400, "bad_request")
    assert reply.headers["connection"] == "close"


def test_an_address_or_head_that_is_too_long_is_refused_by_its_name(server: Running) -> None:
    long_target = b"GET /healthz?%s HTTP/1.1\r\n" + HOST + b"\r\n"
    refused(exchanged(server, b"GET /%s HTTP/1.1\r\n" % (b"x" * 100_000)), 414, "uri_too_long")
    with server.connect() as connection:
        connection.sendall(long_target % (b"x" * 17_000))
        [reply] = answers(received(connection, until_closed=False))
        refused(reply, 414, "uri_too_long")
    many = b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1_000) for n in range(90))
    refused(exchanged(server, b"GET /healthz HTTP/1.1\r\n" + HOST + many), 431, "headers_too_large")
    with server.connect() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 66_000 + b"\r\n\r\n")
        [reply] = answers(received(connection, until_closed=False))
        refused(reply, 431, "headers_too_large")


def test_a_body_that_breaks_its_framing_admits_nothing(server: Running) -> None:
    head = b"POST /graphs/atlas/mutate HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    reply = exchanged(server, head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}xxxzz\r\n")
    refused(reply, 400, "bad_request")
    assert server.codes() == []


def test_a_refused_body_is_read_to_its_end_so_that_the_answer_is_seen(server: Running) -> None:
    """Most clients send the whole body before they read."""
    size = 3 << 20
    head = b"POST /graphs/atlas/mutate HTTP/1.1\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
    ping = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head % (HOST, JSON.encode(), size) + b" " * size + ping)
        refusal, alive = answers(received(connection))
    refused(refusal, 413, "body_too_large", effects="none")
    assert alive.status == 200, "the connection can be used again"


def test_a_client_that_waits_for_leave_is_refused_before_it_sends(server: Running) -> None:
    head = b"POST /graphs/atlas/mutate HTTP/1.1\r\n%sContent-Type: text/plain\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(head % HOST)
        [reply] = answers(received(connection, until_closed=False))
    refused(reply, 415, "unsupported_media_type", effects="none")


def test_an_offer_to_upgrade_is_passed_over(server: Running) -> None:
    data = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    assert exchanged(server, data).status == 200


def test_curl_and_keep_alive(server: Running) -> None:
    two = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\nHEAD /nothing HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    with server.connect() as connection:
        connection.sendall(two)
        data = received(connection)
    first, _, second = data.partition(b'"internal_schema_version":1}')
    assert json.loads(first.partition(b"\r\n\r\n")[2] + b'"internal_schema_version":1}')["status"] == "ok"
    assert second.endswith(b"\r\n\r\n"), "a HEAD has no body"
    assert b"omnigraph-error-code: route_not_found" in second


def test_a_head_that_never_ends_is_given_up(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The timers are those of the design; that they fire is shown on a loop of this process."""
    import asyncio

    import uvicorn
    from uvicorn.server import ServerState

    async def nothing(scope: object, receive: object, send: object) -> None:
        raise AssertionError

    async def dawdle() -> bytes:
        config = uvicorn.Config(nothing, http=Protocol, ws="none", lifespan="off", log_config=None)
        config.load()
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(
            lambda: Protocol(config=config, server_state=ServerState(), app_state={}), "127.0.0.1", 0
        )
        async with listener:
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname()[:2])
            writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
            try:
                return await asyncio.wait_for(reader.read(), 30)
            except ConnectionResetError:
                return b""
            finally:
                writer.close()

    assert (protocol.HEAD_SECONDS_MAX, protocol.DISCARDED_BYTES_MAX) == (10.0, 64 << 20)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(protocol, "HEAD_SECONDS_MAX", 0.05)
        assert asyncio.run(dawdle()) == b""
