"""A log that nobody reads, as of a pipe into a program that hangs, or of a terminal after Ctrl-S: it delays no answer and no end."""

import signal
import threading
import time

import pytest
from full_pipe import FullPipe
from pagoda_server import PagodaServer, free_port
from raw_connection import RawConnection

QUICK_S = 60  # of what takes a second or two on a quiet machine


@pytest.fixture
def log():
    with FullPipe() as pipe:
        yield pipe


@pytest.fixture
def stalled(log):
    server = PagodaServer(log=log.path, port=free_port(), shutdown_timeout=600)
    yield server
    server.process.kill()
    server.process.wait()


def test_every_request_is_answered_and_one_signal_ends_it(stalled):
    completion = {"prompt": "a", "max_tokens": 2, "ignore_eos": True}
    for i in range(8):
        # Each such name is a line, besides the request's own.
        assert stalled.post("/v1/completions", {**completion, f"unknown_{i}": 1})[0] == 200
        assert stalled.post("/v1/completions", {"prompt": -1})[0] == 400
    stalled.terminate()
    assert stalled.process.wait(timeout=QUICK_S) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(stalled, number):
    connection = RawConnection(stalled.port)
    connection.post("/v1/completions", {"prompt": "a", "max_tokens": 400, "ignore_eos": True, "n": 64, "stream": True, "unknown": 1})
    assert connection.read_head()[0] == 200
    stalled.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    stalled.process.send_signal(number)
    assert stalled.process.wait(timeout=QUICK_S) == -number
    connection.close()


def test_what_is_lost_is_told(stalled, log):
    for _ in range(6000):  # more lines than a server keeps for whom does not read
        connection = RawConnection(stalled.port)
        connection.send(b"GET /" + b"x" * 200 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert connection.read_head()[0] == 404
        connection.close()
    stalled.terminate()
    text = []

    def read():
        while stalled.is_running() or text[-1:] != [""]:
            text.append(log.read())
            time.sleep(0.001)

    reads = threading.Thread(target=read)
    reads.start()
    assert stalled.process.wait(timeout=QUICK_S) == 0
    reads.join()
    assert "lines are lost here: nobody has read them in time" in "".join(text)
