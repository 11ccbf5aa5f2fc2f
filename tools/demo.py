#!/usr/bin/env python3
"""Eight chats at once with the default model, over HTTP, and the figures of it: `tools/demo.py build/release/pagoda [DEVICE]`.

Starts the server on a free port of loopback, streams eight answers concurrently, prints them and one line of figures, and
ends the server as Ctrl-C would. Exits 0 if every answer came whole and the server ended cleanly; else 1, with one line that
says why.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

MODEL = "smollm2"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MAX_TOKENS = 128
START_TIMEOUT_S = 120
ANSWER_TIMEOUT_S = 300
END_TIMEOUT_S = 30
PROMPTS = (
    "What is a pagoda?",
    "Write two lines about the sea.",
    "Why is the sky blue?",
    "Name three uses of copper.",
    "Explain gravity to a child.",
    "What does a compiler do?",
    "Give me a recipe for pancakes.",
    "Which planet is the largest, and how large is it?",
)


class DemoError(Exception):
    pass


class Answer(NamedTuple):
    text: str
    num_tokens: int
    start: float  # of the request; all three on one clock, in seconds
    first_token: float
    end: float


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_healthy(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def wait_until_healthy(server, port):
    deadline = time.monotonic() + START_TIMEOUT_S
    while not is_healthy(port):
        if server.poll() is not None:
            raise DemoError(f"the server ended with status {server.returncode} before it was ready")
        if time.monotonic() > deadline:
            raise DemoError(f"the server was not ready after {START_TIMEOUT_S} s")
        time.sleep(0.05)


def events_of(response):
    """The JSON of each server-sent event, up to [DONE]; a stream that ends without it was cut."""
    for line in response:
        if line.startswith(b"data: "):
            data = line.removeprefix(b"data: ").strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)
    raise DemoError("a stream ended before its [DONE]")


def ask(port, prompt):
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_TIMEOUT_S)
    start = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        raise DemoError(f"expected HTTP 200, got {response.status}: {response.read(500).decode(errors='replace')}")
    text, num_tokens, first_token = "", 0, None
    for event in events_of(response):
        if "error" in event:
            raise DemoError(f"the server said: {event['error'].get('message')}")
        for choice in event["choices"]:
            piece = choice["delta"].get("content")
            if piece:
                first_token = first_token or time.monotonic()
                text += piece
        if event.get("usage"):
            num_tokens = event["usage"]["completion_tokens"]
    connection.close()
    if first_token is None or num_tokens == 0:
        raise DemoError(f"an empty answer to: {prompt}")
    return Answer(text, num_tokens, start, first_token, time.monotonic())


def ask_all(port):
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(PROMPTS)) as pool:
        return list(pool.map(lambda prompt: ask(port, prompt), PROMPTS))


def end_as_ctrl_c_does(server):
    server.send_signal(signal.SIGINT)
    try:
        status = server.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise DemoError(f"the server had not ended {END_TIMEOUT_S} s after Ctrl-C") from None
    if status != 0:
        raise DemoError(f"expected the server to end with status 0 after Ctrl-C, got {status}")


def machine_read_gb_per_s(pagoda):
    done = subprocess.run([pagoda, "bench", "machine", "--json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DemoError(f"pagoda bench machine: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])["machine_read_gb_per_s"]


def model_bytes():
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = os.environ.get("PAGODA_MODEL_DIR") or pathlib.Path(cache) / "pagoda" / "models"
    return (pathlib.Path(folder) / MODEL_FILE).stat().st_size


def figures(answers, num_model_bytes, machine_gb_per_s):
    num_tokens = sum(answer.num_tokens for answer in answers)
    seconds = max(answer.end for answer in answers) - min(answer.start for answer in answers)
    to_first = sum(answer.first_token - answer.start for answer in answers) / len(answers)
    # The longest answer saw every decode step, and each step reads all weights once, however many sequences share it.
    longest = max(answers, key=lambda answer: answer.num_tokens)
    steps_per_s = (longest.num_tokens - 1) / max(1e-9, longest.end - longest.first_token)
    read_gb_per_s = steps_per_s * num_model_bytes / 1e9
    return (
        f"{num_tokens} tokens in {seconds:.2f} s: {num_tokens / seconds:.1f} tokens/s, "
        f"time to first token {to_first * 1000:.0f} ms (mean of {len(answers)}), "
        f"weights read at {read_gb_per_s:.1f} GB/s, {100 * read_gb_per_s / machine_gb_per_s:.0f} % "
        f"of this machine's {machine_gb_per_s:.1f} GB/s"
    )


def demo(pagoda, device, log):
    limit = machine_read_gb_per_s(pagoda)
    port = free_port()
    server = subprocess.Popen([pagoda, "serve", MODEL, "--port", str(port), "--device", device], stdout=log, stderr=log)
    try:
        wait_until_healthy(server, port)
        answers = ask_all(port)
        end_as_ctrl_c_does(server)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    for prompt, answer in zip(PROMPTS, answers):
        print(f"> {prompt}\n{answer.text.strip()}\n")
    print(figures(answers, model_bytes(), limit))


def main():
    if len(sys.argv) not in (2, 3):
        print("usage: tools/demo.py PAGODA [DEVICE]", file=sys.stderr)
        return 2
    with tempfile.TemporaryFile() as log:
        try:
            demo(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "auto", log)
            return 0
        except (DemoError, OSError, ValueError, KeyError, http.client.HTTPException) as error:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace")[-4000:])
            print(f"demo: {type(error).__name__}: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
