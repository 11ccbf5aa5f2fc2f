"""A server's life as its users see it: how it begins and ends, and what it survives."""

import asyncio
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import httpx
import openai
import pytest
from fake_server import FakeServer
from pagoda_server import PAGODA, TINY, PagodaServer, free_port
from stream_client import complete, request_bytes
from waiting import HANGS_AFTER_S, wait_for, wait_until

LONG = {"max_tokens": 1900, "ignore_eos": True, "temperature": 0}
CODES_OF_503 = ("loading", "draining", "service_unavailable")


def status_of(port, path="/health"):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=HANGS_AFTER_S) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        assert refused.headers["Retry-After"] == "1" and json.load(refused)["error"]["code"] in CODES_OF_503
        return refused.code


def is_listening(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


class FirstEvents:
    """Counts streams that have begun."""

    def __init__(self):
        self.count = 0

    def __call__(self, number):
        self.count += number == 1


async def streams_meanwhile(port, requests, action):
    """Answers of streams; `action` runs when all of them have begun."""
    begun = FirstEvents()
    tasks = [asyncio.create_task(complete(port, on_event=begun, **request)) for request in requests]
    await wait_until(lambda: begun.count == len(requests))
    action()
    return await asyncio.gather(*tasks)


# --- how it begins

def test_a_taken_port_is_told_before_a_model_is_loaded():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run([PAGODA, "serve", "/no/such/model", "--port", str(port)], capture_output=True, text=True,
                               timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [f"pagoda: [server] 127.0.0.1:{port}: expected an address that is free to listen on, "
                                         "got: Address already in use"]


def write_slow_model(folder, intermediate_size=1 << 20):
    """The small checkpoint with feed-forward networks of 1.2 GB, which are holes in the file: loading takes a while."""
    for file in TINY.iterdir():
        if file.suffix in (".json", ".jinja"):
            shutil.copy(file, folder)
    config = json.loads((TINY / "config.json").read_text())
    stored = (TINY / "model.safetensors").read_bytes()
    length = int.from_bytes(stored[:8], "little")
    tensors = json.loads(stored[8:8 + length])
    tensors.pop("__metadata__", None)
    end = 0
    for name, entry in tensors.items():
        entry["shape"] = [intermediate_size if size == config["intermediate_size"] else size for size in entry["shape"]]
        num_bytes = 2 * math.prod(entry["shape"])
        entry["data_offsets"] = [end, end + num_bytes]
        end += num_bytes
    config["intermediate_size"] = intermediate_size
    (folder / "config.json").write_text(json.dumps(config))
    header = json.dumps(tensors).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + end)


@pytest.mark.parametrize("number, is_ignored", [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)])
def test_while_a_model_is_loaded_it_says_so_and_a_signal_ends_it(tmp_path, number, is_ignored):
    """A script's shell starts what it puts into the background with SIGINT ignored."""
    write_slow_model(tmp_path)
    port = free_port()
    server = subprocess.Popen([PAGODA, "serve", tmp_path, "--port", str(port), "--device", "cpu", "--threads", "1"],
                              stderr=subprocess.DEVNULL,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_IGN if is_ignored else signal.SIG_DFL))
    try:
        wait_for(lambda: is_listening(port))
        assert [status_of(port, path) for path in ("/health", "/readyz", "/livez")] == [503, 503, 200]
        server.send_signal(number)
        assert server.wait(timeout=10) == -number
    finally:
        server.kill()


def test_a_unix_socket_answers_as_an_address_does_and_is_gone_at_the_end(tmp_path):
    path = tmp_path / "pagoda.sock"
    command = [PAGODA, "serve", TINY, "--uds", path, "--device", "cpu", "--threads", "2"]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_for(path.is_socket)
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as transport:
            wait_for(lambda: transport.get("http://localhost/readyz").status_code == 200)
            client = openai.OpenAI(base_url="http://localhost/v1", api_key="none", http_client=transport)
            question = {"model": "tiny-llama", "prompt": [5, 6], "max_tokens": 8, "temperature": 0}
            whole = client.completions.create(**question).choices[0].text
            assert whole == "".join(event.choices[0].text for event in client.completions.create(**question, stream=True))
        server.terminate()
        assert server.wait(timeout=HANGS_AFTER_S) == 0
        assert not path.exists()
    finally:
        server.kill()


# --- how it ends

def test_what_runs_is_finished_after_sigterm_and_what_comes_is_refused():
    server = PagodaServer()
    requests = [{"prompt": [5, 6, i], **LONG} for i in range(4)]
    statuses = []

    def end():
        assert status_of(server.port, "/readyz") == 200
        server.terminate()
        wait_for(lambda: status_of(server.port, "/readyz") == 503)
        statuses.extend(status_of(server.port, path) for path in ("/livez", "/health", "/metrics"))

    answers = asyncio.run(streams_meanwhile(server.port, requests, end))
    assert all(answer.finished and not answer.error and answer.text for answer in answers)
    assert statuses == [200, 200, 200]
    server.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", server.port), timeout=HANGS_AFTER_S)


def test_past_the_deadline_clients_are_told():
    server = PagodaServer(shutdown_timeout=0.2, max_num_seqs=2)
    requests = [{"prompt": [5, 6, i], "n": 4, **LONG} for i in range(12)]

    async def run():
        tasks = [asyncio.create_task(complete(server.port, **request)) for request in requests]
        await asyncio.sleep(0.3)
        server.terminate()
        return await asyncio.gather(*tasks)

    answers = asyncio.run(run())
    assert any(answer.error for answer in answers)
    for answer in answers:
        assert answer.finished, answer
        assert not answer.error or "shutting down" in answer.error
    server.close()


def test_a_killed_server_restarts_on_its_port():
    port = free_port()
    server = PagodaServer(port=port)

    async def run():
        begun = FirstEvents()
        tasks = [asyncio.create_task(complete(port, on_event=begun, prompt=[7, i], **LONG)) for i in range(4)]
        await wait_until(lambda: begun.count == 4)
        server.process.kill()
        return await asyncio.gather(*tasks, return_exceptions=True)

    cut = asyncio.run(run())
    assert all(isinstance(answer, Exception) or not answer.finished for answer in cut)
    server.process.wait()
    again = PagodaServer(port=port)
    answer = asyncio.run(complete(port, prompt=[7, 1], max_tokens=5))
    assert answer.finished and not answer.error
    # The figures are those of whole steps: the answer ends first.
    wait_for(lambda: again.free_share() == 1)
    again.close()


# --- steps that fail

@pytest.fixture
def faulty_server():
    server = subprocess.Popen([os.environ["PAGODA_FAULTY_SERVER"], TINY], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    server.port = int(server.stdout.readline().split()[1])

    def order(line):
        server.stdin.write(line + "\n")
        server.stdin.flush()

    server.order = order
    yield server
    server.stdin.close()
    assert server.wait(timeout=HANGS_AFTER_S) == 0


@pytest.mark.parametrize("how", ["fail", "throw"])
def test_a_failed_step_ends_its_streams_and_no_more(faulty_server, how):
    port = faulty_server.port
    request = {"prompt": [5, 6], **LONG}
    answers = asyncio.run(streams_meanwhile(port, [request] * 3, lambda: faulty_server.order(f"{how} a bit fell over")))
    for answer in answers:
        assert answer.finished and answer.error == "[engine] a step failed: a bit fell over"
    assert status_of(port) == 200
    answer = asyncio.run(complete(port, **request))
    assert answer.finished and not answer.error


def test_a_dead_engine_says_so_everywhere(faulty_server):
    port = faulty_server.port
    requests = [{"prompt": [5, i], **LONG} for i in range(3)]
    answers = asyncio.run(streams_meanwhile(port, requests, lambda: faulty_server.order("die the device is gone")))
    for answer in answers:
        assert answer.finished and "the device is gone" in answer.error
    assert status_of(port) == 503
    refused = asyncio.run(complete(port, prompt="a"))
    assert refused.status == 503 and "it has failed" in refused.error


# --- clients that stop, and others that do not

STOPPED_CLIENT = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
connection.sendall(sys.stdin.buffer.read())
print("begun", connection.recv(1), flush=True)
while connection.recv(1 << 16):
    pass
"""


def test_stopped_clients_stall_nobody():
    server = PagodaServer(max_num_seqs=64)
    body = request_bytes("/v1/completions", {"prompt": [5, 6], "stream": True, "n": 4, "logprobs": 5, **LONG})
    clients = []
    try:
        for _ in range(8):
            client = subprocess.Popen([sys.executable, "-c", STOPPED_CLIENT, str(server.port)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
            client.stdin.write(body)
            client.stdin.close()
            clients.append(client)
        for client in clients:
            assert client.stdout.readline().startswith(b"begun")
            client.send_signal(signal.SIGSTOP)
        slowest = 0
        for i in range(20):
            start = time.monotonic()
            answer = asyncio.run(complete(server.port, prompt=[9, i], max_tokens=4))
            assert answer.finished and not answer.error
            slowest = max(slowest, time.monotonic() - start)
        assert slowest < 30  # a stall lasts until the server gives a stopped client up, after a minute
        # Their answers are computed whether they read them or not: their blocks come back.
        wait_for(lambda: server.free_share() == 1)
    finally:
        for client in clients:
            client.kill()
            client.wait()
    wait_for(lambda: server.num_descriptors() < 20)
    server.close()


def test_a_client_that_never_reads_is_closed():
    fake = FakeServer(quick_limits=True, max_model_len=1 << 20, token_s=0.001)
    try:
        with socket.create_connection(("127.0.0.1", fake.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request_bytes("/v1/completions", {
                "prompt": "count 99999", "max_tokens": 20000, "stream": True, "n": 8, "logprobs": 5}))
            wait_for(lambda: fake.num_cancelled() == 8)
    finally:
        fake.close()


# --- the log

def test_a_full_disk_under_the_log_does_no_harm():
    server = PagodaServer(port=free_port(), log="/dev/full")
    for i in range(20):
        # Unknown names are logged, once each.
        answer = asyncio.run(complete(server.port, prompt=[5, i], max_tokens=4, **{f"unknown_{i}": 1}))
        assert answer.finished and not answer.error
    server.terminate()
    assert server.process.wait(timeout=HANGS_AFTER_S) == 0
