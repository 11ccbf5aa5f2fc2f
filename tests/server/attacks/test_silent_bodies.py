"""Clients that announce much and send nothing: they hold up nobody, and need a key to be read at all."""

import contextlib

import pytest
from attack_requests import MAX_BODY_BYTES, head_of_a_body
from attackers import crowd
from fake_server import FakeServer
from raw_connection import RawConnection


@pytest.fixture(scope="module")
def server_with_key():
    fake = FakeServer(api_key="right")
    yield fake
    fake.close()


def test_sixteen_silent_bodies_do_not_keep_out_a_seventeenth(server):
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            silent = RawConnection(server.port)
            stack.callback(silent.close)
            silent.send(head_of_a_body(MAX_BODY_BYTES, "Expect: 100-continue"))
            assert silent.read_line() == b"HTTP/1.1 100 Continue\r\n"  # its header has been read
        client = RawConnection(server.port)
        stack.callback(client.close)
        client.post("/v1/completions", b'{"prompt": "say me"}' + b" " * (1 << 20))
        status, answer = client.read()
        assert status == 200 and answer["choices"][0]["text"] == "me"


def test_bodies_that_lack_a_byte_take_no_more_than_all_may(server):
    before = server.resident_bytes()
    body = b" " * (MAX_BODY_BYTES - 1)
    with contextlib.ExitStack() as stack:
        silent = []
        for _ in range(24):
            silent.append(RawConnection(server.port))
            stack.callback(silent[-1].close)
            with contextlib.suppress(OSError):  # it is refused already
                silent[-1].send(head_of_a_body(MAX_BODY_BYTES) + body)
        status, answer = silent[-1].read()
        assert status == 503 and answer["error"]["message"] == "too many large requests are on their way, or waiting: ask again later"
    assert server.resident_bytes() - before < 200e6


def test_a_crowd_that_says_nothing_keeps_out_nobody(server):
    assert crowd(500)(server.port).statuses == [200]


@pytest.mark.parametrize("framing", [b"Content-Length: %d" % MAX_BODY_BYTES, b"Transfer-Encoding: chunked"])
def test_the_key_is_asked_for_before_the_body_comes(server_with_key, framing):
    connection = RawConnection(server_with_key.port)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"
    connection.send(head + framing + b"\r\n\r\n")
    status, answer = connection.read()
    assert status == 401 and answer["error"]["code"] == "invalid_api_key"
    assert connection.closed_by_server()
    connection.close()


def test_a_small_request_without_its_key_leaves_the_connection_as_it_was(server_with_key):
    connection = RawConnection(server_with_key.port)
    connection.post("/v1/completions", {"prompt": "say no"})
    assert connection.read()[0] == 401
    connection.post("/v1/completions", {"prompt": "say yes"}, ["Authorization: Bearer right"])
    assert connection.read()[1]["choices"][0]["text"] == "yes"
    connection.close()
