#!/usr/bin/env python3
"""What a long prompt does to those who decode beside it: `bench/prompt_among_decodes.py build/release/pagoda`.

Each turn starts a server without a prefix cache, opens four streams, lets them run alone, and sends a prompt of 4,000 tokens.
Prints the gaps between a stream's tokens without the prompt, just before it came and just after its first token, because contexts
grow meanwhile, and those of tokens that came between the prompt's arrival and its first token. Last what the machine alone makes of
the latter: the p99 of steps as long as their median that are interrupted as a loop on each processor is, right afterwards, that
does nothing but look at the clock.

The client shares the machine with the server, so it only stamps what arrives and counts the events afterwards.
"""

import argparse
import itertools
import json
import multiprocessing
import pathlib
import random
import selectors
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from running_server import RunningServer, free_port  # noqa: E402

VOCAB_SIZE = 49152
EVENT = b'data: {"'
TIMEOUT_S = 300
SHORTEST_STOP_S = 0.0002
WATCHED_S = 10


class Stream:
    """A completion that streams: what arrived, and when."""

    def __init__(self, port, prompt, max_tokens):
        body = json.dumps({"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True, "stream": True})
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        self.sent_at = time.perf_counter()
        self.socket.setblocking(False)
        self.received = []  # (time, bytes)

    def receive(self):
        """False: that was the end."""
        data = self.socket.recv(1 << 16)
        self.received.append((time.perf_counter(), data))
        return bool(data)

    def text(self):
        return b"".join(data for _, data in self.received)

    def token_times(self):
        times = []
        unread = b""
        for at, data in self.received:
            unread += data
            times += [at] * unread.count(EVENT)
            unread = unread[unread.rfind(EVENT) + len(EVENT):] if EVENT in unread else unread
            unread = unread[-len(EVENT) + 1:]
        return times


def receive_until(selector, is_over):
    deadline = time.perf_counter() + TIMEOUT_S
    while not is_over():
        if time.perf_counter() > deadline:
            raise OSError("the server takes too long")
        for key, _ in selector.select(timeout=0.05):
            if not key.data.receive():
                selector.unregister(key.fileobj)
                if not key.data.token_times():
                    raise OSError(f"a request without an answer: {key.data.text()[:300]}")


def receive_for(selector, seconds):
    end = time.perf_counter() + seconds
    receive_until(selector, lambda: time.perf_counter() > end)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def turn(flags, port):
    """The gaps in seconds without and beside the prompt, and the prompt's time to first token."""
    draw = random.Random(20261121)
    tokens = [draw.randrange(100, VOCAB_SIZE) for _ in range(flags.prompt_len)]
    selector = selectors.DefaultSelector()
    streams = [Stream(port, tokens[i:i + 64], flags.output_len) for i in range(flags.streams)]
    for stream in streams:
        selector.register(stream.socket, selectors.EVENT_READ, stream)
    receive_for(selector, flags.alone_s)
    prompt = Stream(port, tokens, 1)
    selector.register(prompt.socket, selectors.EVENT_READ, prompt)
    receive_until(selector, lambda: prompt.token_times())
    first_token_at = prompt.token_times()[0]
    watched_s = flags.alone_s / 2
    receive_for(selector, watched_s)
    alone, beside = [], []
    for stream in streams:
        times = stream.token_times()
        for before, at in zip(times, times[1:]):
            if prompt.sent_at - watched_s <= at < prompt.sent_at or first_token_at < before <= first_token_at + watched_s:
                alone.append(at - before)
            elif prompt.sent_at <= at <= first_token_at:
                beside.append(at - before)
    for stream in [*streams, prompt]:
        stream.socket.close()
    return alone, beside, first_token_at - prompt.sent_at


def find_stops():
    """(begin, length) of each stop of a loop on each processor that only looks at the clock, in seconds from the first one's begin."""
    with multiprocessing.Pool() as pool:
        found = pool.map(watch, [WATCHED_S] * multiprocessing.cpu_count(), chunksize=1)
    stops = sorted(itertools.chain(*found))
    return [(at - stops[0][0], length) for at, length in stops]


def watch(seconds):
    stops = []
    before = begin = time.perf_counter()
    while before < begin + seconds:
        now = time.perf_counter()
        if now - before > SHORTEST_STOP_S:
            stops.append((before, now - before))
        before = now
    return stops


def steps_with_stops(step_s, stops):
    """Steps of step_s each, one after the other, as long as the stops that fall into them leave them."""
    steps, end, left = [], 0, list(stops)
    while end < WATCHED_S:
        begin, end = end, end + step_s
        while left and left[0][0] < end:
            end += left.pop(0)[1]
        steps.append(end - begin)
    return steps


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", default="smollm2", help="of a vocabulary of 49,152 tokens or more")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--alone-s", type=float, default=4, help="how long the streams run before the prompt")
    for name, value in (("threads", 2), ("streams", 4), ("prompt-len", 4000), ("output-len", 3000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def main():
    flags = parse_flags()
    print("| alone: median, ms | p99 | beside the prompt: median | p99 | p99 / median alone | prompt's first token, ms |"
          " p99 by stops alone |")
    print("|" + "---|" * 7)
    for _ in range(flags.turns):
        port = free_port()
        command = [flags.pagoda, "serve", flags.model, "--device", "cpu", "--threads", flags.threads, "--port", port,
                   "--no-enable-prefix-caching"]
        try:
            with RunningServer(command, port, "/dev/null"):
                alone, beside, ttft = turn(flags, port)
        except (OSError, subprocess.TimeoutExpired) as error:
            sys.exit(f"prompt_among_decodes: {error}")
        median, p99 = statistics.median(alone), percentile(beside, 0.99)
        by_stops = percentile(steps_with_stops(statistics.median(beside), find_stops()), 0.99)
        print(f"| {1e3 * median:.2f} | {1e3 * percentile(alone, 0.99):.2f} | {1e3 * statistics.median(beside):.2f} | "
              f"{1e3 * p99:.2f} | {p99 / median:.2f} | {1e3 * ttft:.0f} | {1e3 * by_stops:.2f} |", flush=True)


if __name__ == "__main__":
    main()
