"""A system that has no thread left, and files that may not grow: one line and an exit status, or a 503, never a signal."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from pagoda_command import HANGS_AFTER_S, PAGODA, TINY, pagoda

FEW_THREADS = os.environ["PAGODA_FEW_THREADS"]


def few_threads(number):
    return {"LD_PRELOAD": FEW_THREADS, "PAGODA_NUM_THREADS": str(number)}


def lacks_thread(line):
    return "expected the system to start one more thread" in line or "the system starts no thread" in line


def listening_port(process, log):
    """Of a server; None where it has ended."""
    for _ in range(100 * HANGS_AFTER_S):
        if found := re.search(r"listening on http://[^ ]*:(\d+)", log.read_text()):
            return int(found[1])
        if process.poll() is not None:
            return None
        time.sleep(0.01)
    raise AssertionError(log.read_text())


def test_a_server_that_lacks_a_thread_says_so_in_one_line(tmp_path):
    log = tmp_path / "log"
    for number in range(60):
        with log.open("w") as stderr:
            process = subprocess.Popen([PAGODA, "serve", TINY, "--port", "0", "--device", "cpu", "--threads", "3", "--prefix-cache-dir",
                                        tmp_path / "cache", "--otlp-traces-endpoint", "http://localhost:9/v1/traces"],
                                       stdin=subprocess.DEVNULL, stderr=stderr, env={**os.environ, **few_threads(number)})
        if port := listening_port(process, log):
            break
        last = log.read_text().splitlines()[-1]
        assert process.wait(timeout=HANGS_AFTER_S) == 1, (number, log.read_text())
        assert lacks_thread(last), (number, last)
    assert number > 8  # the log's, the listener's, the lanes', the engine's, its workers'
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=HANGS_AFTER_S) as answer:
        assert answer.status == 200
    process.terminate()
    assert process.wait(timeout=HANGS_AFTER_S) == 0


@pytest.mark.parametrize("command", [["run", TINY, "a", "--max-tokens", "2", "--device", "cpu", "--threads", "3"],
                                     ["bench", "machine", "--threads", "3"]], ids=lambda command: command[0])
def test_other_commands_too(command):
    stderr = pagoda(*command, code=1, **few_threads(1)).stderr
    assert lacks_thread(stderr), stderr


def test_quantize_goes_on_with_the_threads_that_there_are(tmp_path):
    for number in (0, 1):
        pagoda("quantize", TINY, tmp_path / f"{number}.gguf", "--format", "Q8_0", "--threads", "4", **few_threads(number))
    assert (tmp_path / "0.gguf").read_bytes() == (tmp_path / "1.gguf").read_bytes()


def status_of(port, path, body):
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data)
    try:
        with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["message"]


def address_space(process):
    return int(re.search(r"VmSize:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) * 1024


def test_requests_without_room_are_503_until_there_is_some(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen([PAGODA, "serve", TINY, "--port", "0", "--device", "cpu", "--threads", "2"], stdin=subprocess.DEVNULL,
                                   stderr=stderr)
    port = listening_port(process, log)
    chat = {"messages": [{"role": "user", "content": "a"}], "max_tokens": 2}
    constrained = {"prompt": "a", "max_tokens": 2, "structured_outputs": {"regex": "a+"}}
    assert status_of(port, "/v1/chat/completions", chat)[0] == 200
    before = resource.prlimit(process.pid, resource.RLIMIT_AS)
    # A template's thread, and a grammar's, have a gigabyte of address space for their stacks.
    resource.prlimit(process.pid, resource.RLIMIT_AS, (address_space(process) + (256 << 20), before[1]))
    for path, body in (("/v1/chat/completions", chat), ("/v1/completions", constrained)):
        status, message = status_of(port, path, body)
        assert status == 503 and "the system starts no thread" in message, (status, message)
    assert status_of(port, "/v1/completions", {"prompt": "a", "max_tokens": 2})[0] == 200
    resource.prlimit(process.pid, resource.RLIMIT_AS, (address_space(process), before[1]))
    status, message = status_of(port, "/v1/completions", {"prompt": "a" * 15_000_000})
    assert status == 503 and "no memory left" in message, (status, message)
    assert status_of(port, "/health", None)[0] == 200
    resource.prlimit(process.pid, resource.RLIMIT_AS, before)
    for path, body in (("/v1/chat/completions", chat), ("/v1/completions", constrained)):
        assert status_of(port, path, body)[0] == 200
    process.terminate()
    assert process.wait(timeout=HANGS_AFTER_S) == 0


def with_short_files(num_bytes):
    """For a child: what writes further gets SIGXFSZ, which ends it, or an error where that is ignored."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, num_bytes))


def test_a_file_that_may_not_grow_is_an_error(tmp_path):
    done = subprocess.run([PAGODA, "quantize", TINY, tmp_path / "out.gguf", "--format", "Q8_0"], capture_output=True, text=True,
                          timeout=HANGS_AFTER_S, preexec_fn=lambda: with_short_files(10_000))
    assert done.returncode == 1 and "File too large" in done.stderr and len(done.stderr.splitlines()) == 1, done
    assert list(tmp_path.iterdir()) == []
    with (tmp_path / "answer").open("w") as stdout:
        done = subprocess.run([PAGODA, "--help"], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=HANGS_AFTER_S,
                              preexec_fn=lambda: with_short_files(10))
    assert done.returncode == 1 and "standard output could not be written" in done.stderr, done


def test_a_server_goes_on_where_its_cache_cannot_be_written(tmp_path):
    log = tmp_path / "log"
    with log.open("w") as stderr:
        process = subprocess.Popen([PAGODA, "serve", TINY, "--port", "0", "--device", "cpu", "--threads", "2", "--prefix-cache-dir",
                                    tmp_path / "cache"], stdin=subprocess.DEVNULL, stderr=stderr,
                                   preexec_fn=lambda: with_short_files(3000))
    port = listening_port(process, log)
    for i in range(4):  # the log may not grow either
        assert status_of(port, "/v1/completions", {"prompt": [7 + i] * 100, "max_tokens": 2, "ignore_eos": True})[0] == 200
    process.terminate()
    assert process.wait(timeout=HANGS_AFTER_S) == 0, log.read_text()
    assert "[disk cache]" in log.read_text()
