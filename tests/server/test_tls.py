"""`pagoda serve` by TLS: whom it answers, how its certificate is read and renewed, and how it ends. What clients send that they
should not, and OpenAI's client, are tested by TLS where they are by HTTP (test_bad_clients.py, test_openai_client.py)."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from certificate import Certificate
from fake_server import FakeServer
from pagoda_server import PAGODA, TINY
from raw_connection import RawConnection
from waiting import HANGS_AFTER_S, wait_for


@pytest.fixture
def certificate(tmp_path):
    return Certificate(tmp_path)


@pytest.fixture
def server(certificate):
    fake = FakeServer(certificate, token_s=0.001, max_model_len=100000)
    yield fake
    assert fake.is_running()
    fake.close()


def serial_of(server):
    """That of the certificate which a new connection is shown."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_AFTER_S) as plain:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(plain) as secure:
            return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))


def serve(*flags, **options):
    return subprocess.run([PAGODA, "serve", TINY, "--port", "0", "--max-connections", "64", *map(str, flags)], capture_output=True, text=True,
                          timeout=HANGS_AFTER_S, **options)


def test_ps_reaches_it_by_https(server, certificate):
    found = subprocess.run([PAGODA, "ps", server.url], capture_output=True, text=True, timeout=HANGS_AFTER_S,
                           env={"SSL_CERT_FILE": str(certificate.file)})
    assert found.returncode == 0 and "fake-model" in found.stdout


def test_who_speaks_http_instead_is_told(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/v1/models", timeout=HANGS_AFTER_S)
    assert caught.value.code == 400
    assert json.load(caught.value)["error"]["code"] == "https_expected"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_versions_are_not_spoken(server, certificate):
    context = certificate.trusted()
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_AFTER_S) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("bytes_sent", [b"", b"\x16\x03\x01", b"\x16\x03\x01\xff\xff" + b"\x00" * 500, bytes(range(256)) * 200])
def test_what_is_no_handshake_is_dropped(certificate, bytes_sent):
    fake = FakeServer(certificate, quick_limits=True)
    with socket.create_connection(("127.0.0.1", fake.port), timeout=HANGS_AFTER_S) as plain:
        try:
            plain.sendall(bytes_sent)
            while plain.recv(1000):
                pass
        except ConnectionError:
            pass  # it need not read to the end
    connection = RawConnection(fake.port, certificate)
    connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.read()[0] == 200
    connection.close()
    fake.close()


def test_a_client_that_takes_nothing_is_given_up(certificate):
    fake = FakeServer(certificate, quick_limits=True, max_model_len=1 << 20, token_s=0.001)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", fake.port))
    secure = certificate.trusted().wrap_socket(plain, server_hostname="localhost")
    body = json.dumps({"prompt": "count 99999", "max_tokens": 20000, "stream": True, "n": 8, "logprobs": 5}).encode()
    secure.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    wait_for(lambda: fake.num_cancelled() == 8)
    secure.close()
    fake.close()


def test_a_slow_client_gets_all_of_a_long_answer(server, certificate):
    connection = http.client.HTTPSConnection("localhost", server.port, context=certificate.trusted(), timeout=HANGS_AFTER_S)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": "count 500", "max_tokens": 4000, "logprobs": 5, "n": 4}))
    answer, text = connection.getresponse(), b""
    while piece := answer.read(20000):
        text += piece
        time.sleep(0.005)
    assert len(text) > 200_000
    assert [choice["text"].split(" ")[-1] for choice in json.loads(text)["choices"]] == ["500"] * 4
    connection.close()


def test_a_stop_waits_for_what_runs_and_not_for_who_is_idle(certificate):
    fake = FakeServer(certificate, token_s=0.001, max_model_len=100000)
    idle = RawConnection(fake.port, certificate)
    shakes_no_hands = socket.create_connection(("127.0.0.1", fake.port), timeout=HANGS_AFTER_S)
    running = RawConnection(fake.port, certificate)
    running.post("/v1/completions", {"prompt": "count 100", "max_tokens": 400, "stream": True})
    assert running.read_head()[0] == 200
    started = time.monotonic()
    closing = threading.Thread(target=fake.close)
    closing.start()
    lines = []
    while line := running.read_line():
        lines.append(line)
    closing.join()
    assert b"data: [DONE]\n" in lines
    assert time.monotonic() - started < 15  # the handshake alone would have twenty seconds
    assert idle.closed_by_server()
    for connection in (idle, running, shakes_no_hands):
        connection.close()


def test_a_renewed_certificate_is_taken_and_a_broken_one_is_not(server, certificate):
    first = serial_of(server)
    stays_open = RawConnection(server.port, certificate)
    certificate.file.write_text("no certificate")
    time.sleep(1.2)  # it looks once a second
    assert serial_of(server) == first
    certificate.renew()
    wait_for(lambda: serial_of(server) != first)
    stays_open.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert stays_open.read()[0] == 200
    stays_open.close()


def test_a_certificate_that_becomes_a_pipe_delays_no_connection(server, certificate):
    first = serial_of(server)
    certificate.file.unlink()
    os.mkfifo(certificate.file)
    for _ in range(3):
        time.sleep(0.6)  # it looks once a second
        assert serial_of(server) == first
    certificate.file.unlink()
    certificate.renew()
    wait_for(lambda: serial_of(server) != first)


def test_files_that_cannot_be_taken_are_named(certificate, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    other = Certificate(other)
    locked = tmp_path / "locked.pem"
    subprocess.run(["openssl", "ec", "-aes128", "-passout", "pass:secret", "-in", certificate.key, "-out", locked], check=True,
                   capture_output=True)
    empty = tmp_path / "empty.pem"
    empty.touch()
    for file, key, message in [
            (tmp_path / "none.pem", certificate.key, f"{tmp_path}/none.pem: expected a file with the certificate, got one that can't be read"),
            (certificate.file, tmp_path, f"{tmp_path}: expected a file with the certificate's key, got one that can't be read"),
            (empty, certificate.key, f"{empty}: expected the certificate in PEM, got something else"),
            (certificate.key, certificate.key, f"{certificate.key}: expected the certificate in PEM, got something else"),
            (certificate.file, certificate.file, f"{certificate.file}: expected the certificate's key in PEM, got something else"),
            (certificate.file, locked, f"{locked}: expected a key without a passphrase, got one with it"),
            (certificate.file, other.key, f"{other.key}: expected the certificate's key in PEM, got that of another")]:
        done = serve("--ssl-certfile", file, "--ssl-keyfile", key, stdin=subprocess.DEVNULL)
        assert done.returncode in (1, 2) and message in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert "expected both --ssl-certfile and --ssl-keyfile, got one" in serve("--ssl-certfile", certificate.file).stderr
