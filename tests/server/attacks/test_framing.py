"""What stands around a request's body: nothing of it may be without end, or be read in two ways."""

import time

import pytest
from attack_requests import CHUNKED, ENDLESS
from raw_connection import RawConnection

SENT = 32 << 20


@pytest.fixture
def connection(server):
    opened = RawConnection(server.port)
    yield opened
    opened.close()
    next_one = RawConnection(server.port)
    next_one.post("/v1/completions", {"prompt": "say well"})
    assert next_one.read()[1]["choices"][0]["text"] == "well"
    next_one.close()


@pytest.mark.parametrize("start, piece, status", ENDLESS.values(), ids=ENDLESS)
def test_what_has_no_end_is_refused_without_being_kept(server, connection, start, piece, status):
    before = server.resident_bytes()
    connection.send(start)
    try:
        for _ in range(SENT // len(piece)):
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it need not listen to the end
    answered, body = connection.read()
    assert answered == status and "over the limit of 32768 bytes" in body["error"]["message"]
    assert connection.closed_by_server()
    assert server.resident_bytes() - before < 4 << 20


def test_a_body_of_16_mb_in_small_chunks_is_answered(connection):
    body = b'{"prompt": "say chunks"}'
    body += b" " * ((16 << 20) - len(body))
    size = 16
    chunks = b"".join(b"10\r\n%s\r\n" % body[i:i + size] for i in range(0, len(body), size))
    connection.send(CHUNKED + chunks + b"0\r\n\r\n")
    status, answer = connection.read()
    assert status == 200 and answer["choices"][0]["text"] == "chunks"


# Each piece in a read of its own. An empty body is no request, and an answer nevertheless.
@pytest.mark.parametrize("pieces", [[b"0\r\n", b"\r", b"\n"], [b"0", b"\r", b"\n", b"\r", b"\n"], [b"0\r\n\r", b"\n"]], ids=repr)
def test_a_last_chunk_in_pieces(connection, pieces):
    connection.send(CHUNKED)
    for piece in pieces:
        time.sleep(0.1)
        connection.send(piece)
    status, answer = connection.read()
    assert status == 400 and answer["error"]["message"]


@pytest.mark.parametrize("fields", [
    b"Transfer-Encoding: xchunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity\r\nContent-Length: 2",
    b"Transfer-Encoding: chunked\r\nContent-Length: 2", b"Content-Length: 2\r\nTransfer-Encoding: chunked",
    b"Content-Length: 2, 2", b"Content-Length: 2\r\nContent-Length: 2", b"Content-Length: 2\r\nContent-Length: 3",
    b"Content-Length : 2", b"Content-Length: +2", b"Host: localhost\r\nContent-Length: 2",
], ids=lambda fields: fields.decode().replace("\r\n", ", "))
def test_a_request_of_two_readings_is_refused(connection, fields):
    smuggled = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connection.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + b"\r\n\r\n{}" + smuggled)
    status, answer = connection.read()
    assert status == 400 and answer["error"]["code"] == "bad_http"
    assert connection.closed_by_server()
