"""Clients that send what they should not, or do not do what they should: each is answered, and so is the next one. All of it by
HTTP and by TLS."""

import json
import ssl
import threading
import time

import jsonschema
import pytest
from certificate import Certificate
from fake_server import FakeServer
from raw_connection import RawConnection
from waiting import wait_for


@pytest.fixture(scope="module", params=["http", "https"])
def certificate(request, tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("certificate")) if request.param == "https" else None


@pytest.fixture(scope="module")
def server(certificate):
    fake = FakeServer(certificate, max_queue=1024)
    yield fake
    assert fake.is_running()
    fake.close()


@pytest.fixture
def connect(server):
    connections = []

    def open_connection():
        connections.append(RawConnection(server.port, server.certificate))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()
    next_one = RawConnection(server.port, server.certificate)
    next_one.post("/v1/completions", {"prompt": "say well"})
    status, body = next_one.read()
    next_one.close()
    assert status == 200 and body["choices"][0]["text"] == "well"


@pytest.mark.parametrize("body, part", [
    (b"", "not valid JSON at byte 0"),
    (b"{", "not valid JSON at byte 1"),
    (b'{"prompt": "a"} trailing', "not valid JSON at byte 18"),
    (b'{"prompt": "a", "temperature": NaN}', "not valid JSON"),
    (b'{"prompt": "a", "temperature": 1e999}', "out of range"),
    (b'{"prompt": "\xff\xfe"}', "not valid UTF-8 at byte 12"),
    (b'{"prompt": "\xed\xa0\x80"}', "not valid UTF-8 at byte 12"),
    (b'{"prompt": "\\ud800"}', "not valid JSON"),
    (b'{"prompt": ' + b"[" * 100000, "deeper than 64 levels"),
    (b'["prompt"]', "expected a JSON object"),
    (b"null", "expected a JSON object"),
    (b"\x00\x01\x02", "not valid JSON"),
])
def test_bodies_that_are_no_requests(connect, body, part):
    connection = connect()
    connection.post("/v1/completions", body)
    status, answer = connection.read()
    assert status == 400 and part in answer["error"]["message"]
    # The connection is as good as before.
    connection.post("/v1/completions", {"prompt": "say again"})
    assert connection.read()[0] == 200


def test_every_field_of_a_wrong_type(connect):
    connection = connect()
    connection.send(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
    components = connection.read()[1]["components"]
    endpoints = {"/v1/completions": ("CompletionRequest", {"prompt": "a"}),
                 "/v1/chat/completions": ("ChatCompletionRequest", {"messages": [{"role": "user", "content": "a"}]}),
                 "/tokenize": ("TokenizeRequest", {"prompt": "a"}), "/detokenize": ("DetokenizeRequest", {"tokens": [97]})}
    num_refused = 0
    for path, (schema, good) in endpoints.items():
        for name, field in components["schemas"][schema]["properties"].items():
            validator = jsonschema.Draft202012Validator({**field, "components": components})
            for value in ({"a": {"b": 1}}, "x", True, 7):
                if validator.is_valid(value):
                    continue
                connection.post(path, {**good, name: value})
                status, answer = connection.read()
                unknown_model = name == "model" and value == "x"
                assert status == (404 if unknown_model else 400), (path, name, value, answer)
                assert answer["error"]["param"] == name or name in answer["error"]["message"], answer
                num_refused += 1
    assert num_refused > 500, num_refused


def test_a_body_of_100_mb_is_refused_without_being_kept(server, connect):
    before = server.resident_bytes()
    connection = connect()
    size = 100 << 20
    connection.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size)
    piece = b"x" * (1 << 20)
    try:
        for _ in range(size // len(piece)):
            connection.send(piece)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it need not listen to the end
    status, answer = connection.read()
    assert status == 413 and "16777216 bytes" in answer["error"]["message"]
    assert server.resident_bytes() - before < 40 << 20


def test_a_long_list_of_tokens_is_answered(connect):
    connection = connect()
    connection.post("/v1/completions", b'{"prompt": [' + b"1," * 2_000_000 + b"1]}")
    status, answer = connection.read()
    assert status == 400 and answer["error"]["code"] == "context_length_exceeded"


def test_pipelined_requests_are_answered_in_order(connect):
    connection = connect()
    for word in ["one", "two", "three"]:
        connection.post("/v1/completions", {"prompt": f"say {word}"})
    for word in ["one", "two", "three"]:
        assert connection.read()[1]["choices"][0]["text"] == word


def test_a_chunked_body(connect):
    connection = connect()
    body = json.dumps({"prompt": "say chunks"}).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, body[i:i + 1]) for i in range(len(body)))
    connection.send(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert connection.read()[1]["choices"][0]["text"] == "chunks"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["think 60", "count 9999"])
def test_a_client_that_goes_away_is_forgotten(certificate, stream, prompt):
    fake = FakeServer(certificate, token_s=0.005, max_model_len=100000)
    try:
        connection = RawConnection(fake.port, fake.certificate)
        connection.post("/v1/completions", {"prompt": prompt, "stream": stream, "max_tokens": 50000})
        time.sleep(0.2)
        assert fake.num_cancelled() == 0
        connection.close()
        wait_for(lambda: fake.num_cancelled() == 1)
    finally:
        fake.close()


def test_a_slow_reader_delays_nobody(server, connect):
    slow = connect()
    slow.post("/v1/completions", {"prompt": "count 400", "max_tokens": 1500, "stream": True, "logprobs": 5, "n": 8})
    other = connect()
    cancelled = server.num_cancelled()
    other.post("/v1/completions", {"prompt": "say quick"})
    assert other.read()[1]["choices"][0]["text"] == "quick"
    assert server.num_cancelled() == cancelled  # the slow one was there all the time
    assert slow.read_head()[0] == 200


@pytest.fixture(scope="module")
def strict_server(certificate):
    fake = FakeServer(certificate, quick_limits=True)
    yield fake
    fake.close()


@pytest.mark.parametrize("start", [
    b"GET /health HTTP/1.1\r\nHost", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
])
def test_half_a_request_is_dropped(strict_server, start):
    connection = RawConnection(strict_server.port, strict_server.certificate)
    connection.send(start)
    status, answer = connection.read()
    assert status == 408 and answer["error"]["code"] == "request_timeout"
    connection.close()


def test_a_byte_at_a_time_is_dropped(strict_server):
    connection = RawConnection(strict_server.port, strict_server.certificate)
    # Two minutes of bytes for a server that waits a second; one that reads on raises nothing.
    with pytest.raises((BrokenPipeError, ConnectionResetError, ssl.SSLEOFError)):
        for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 1000:
            connection.send(bytes([byte]))
            time.sleep(0.02)
    connection.close()


def test_idle_connections_are_closed_and_too_many_are_refused(strict_server):
    connections = [RawConnection(strict_server.port, strict_server.certificate) for _ in range(8)]
    if strict_server.certificate:
        with pytest.raises(OSError):  # it would take no answer before the handshake
            RawConnection(strict_server.port, strict_server.certificate)
    else:
        connections.append(RawConnection(strict_server.port))
        status, answer = connections[8].read()
        assert status == 503 and answer["error"]["code"] == "too_many_connections"
    assert all(connection.closed_by_server() for connection in connections)
    for connection in connections:
        connection.close()
    connection = RawConnection(strict_server.port, strict_server.certificate)
    connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.read()[0] == 200
    connection.close()


def test_comments_come_while_the_prompt_is_read(strict_server):
    connection = RawConnection(strict_server.port, strict_server.certificate)
    connection.post("/v1/completions", {"prompt": "think 2", "stream": True})
    status, headers = connection.read_head()
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    lines = []
    while not lines or not lines[-1].startswith(b"data: [DONE]"):
        lines.append(connection.read_line())
        assert lines[-1], "the stream ended early"
    assert lines.count(b": keep-alive\n") >= 2
    assert lines.index(b": keep-alive\n") < next(i for i, line in enumerate(lines) if line.startswith(b"data:"))
    connection.close()


def test_many_clients_at_once(server):
    texts = [None] * 48

    def ask(i):
        connection = RawConnection(server.port, server.certificate)
        connection.post("/v1/chat/completions", {"messages": [{"role": "user", "content": f"say {i}"}]})
        texts[i] = connection.read()[1]["choices"][0]["message"]["content"]
        connection.close()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(texts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [str(i) for i in range(len(texts))]
