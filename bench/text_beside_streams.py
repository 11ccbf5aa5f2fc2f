#!/usr/bin/env python3
"""What large texts do to streams and to /health beside them: `bench/text_beside_streams.py build/release/pagoda`.

Each turn starts a server, opens four streams, lets them run alone, and then lets eight clients tokenise 4 MB each, over and over.
Prints what the streams got and the gaps between a stream's tokens, without and beside them, how long /health took beside them, and
how many texts were done.
Fails unless /health answers within 50 ms, and 99 of 100 gaps of each stream are at most twice its longest one without them plus
20 ms.

The clients are processes of their own: the one that measures only stamps what arrives and counts the events afterwards.
"""

import argparse
import http.client
import json
import multiprocessing
import pathlib
import random
import selectors
import subprocess
import sys
import threading
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from prompt_among_decodes import Stream, percentile, receive_for, receive_until  # noqa: E402
from running_server import RunningServer, free_port  # noqa: E402

ALLOWED_HEALTH_S = 0.05
ALLOWED_FACTOR = 2
ALLOWED_MORE_S = 0.02
HEALTH_PAUSE_S = 0.02
WORDS = ("the cat sat on a mat and thought of 12 mice; naïve, was it? " "\n\n" "def main(): return 42 " "漢字 ").split(" ")


class Figures(NamedTuple):
    alone: list[list[float]]  # gaps of each stream, in seconds
    beside: list[list[float]]
    health: list[float]
    num_texts: int


def tokenize_forever(port, num_bytes, seed, num_done):
    draw = random.Random(seed)
    text = " ".join(draw.choices(WORDS, k=num_bytes // 3)).encode()[:num_bytes].decode(errors="ignore")
    body = json.dumps({"prompt": text}, ensure_ascii=False).encode()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("POST", "/tokenize", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status == 200:
            with num_done.get_lock():
                num_done.value += 1
        else:
            time.sleep(0.1)


def ask_health(port, seconds, times):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()
        times.append(time.perf_counter() - start)
        time.sleep(HEALTH_PAUSE_S)


def gaps(stream, begin, end):
    times = stream.token_times()
    return [at - before for before, at in zip(times, times[1:]) if begin <= at and before < end]


def turn(flags, port):
    selector = selectors.DefaultSelector()
    streams = [Stream(port, list(range(100 + i, 164 + i)), flags.output_len) for i in range(flags.streams)]
    for stream in streams:
        selector.register(stream.socket, selectors.EVENT_READ, stream)
    receive_until(selector, lambda: all(stream.received for stream in streams))
    alone_from = time.perf_counter()
    receive_for(selector, flags.alone_s)
    num_done = multiprocessing.Value("i", 0)
    clients = [multiprocessing.Process(target=tokenize_forever, args=(port, flags.text_mb << 20, i, num_done), daemon=True)
               for i in range(flags.clients)]
    for client in clients:
        client.start()
    receive_for(selector, 2)  # they make their texts
    beside_from = time.perf_counter()
    health = []
    asker = threading.Thread(target=ask_health, args=(port, flags.beside_s, health))
    asker.start()
    receive_for(selector, flags.beside_s)
    asker.join()
    for client in clients:
        client.kill()
    alone = [gaps(stream, alone_from, alone_from + flags.alone_s) for stream in streams]
    beside = [gaps(stream, beside_from, beside_from + flags.beside_s) for stream in streams]
    for stream in streams:
        stream.socket.close()
    return Figures(alone, beside, health, num_done.value)


def within_bounds(figures):
    allowed = [ALLOWED_FACTOR * max(alone) + ALLOWED_MORE_S for alone in figures.alone]
    return max(figures.health) < ALLOWED_HEALTH_S and all(
        percentile(beside, 0.99) <= most for beside, most in zip(figures.beside, allowed))


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", default="smollm2", help="of a vocabulary of 300 tokens or more")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--alone-s", type=float, default=5)
    parser.add_argument("--beside-s", type=float, default=15)
    for name, value in (("threads", 2), ("streams", 4), ("clients", 8), ("text-mb", 4), ("output-len", 6000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def main():
    flags = parse_flags()
    print("| alone: tokens/s | p50, ms | longest | beside the texts: tokens/s | p50, ms | p99 | longest | /health: p50, ms | longest | "
          "texts | within bounds |")
    print("|" + "---|" * 11)
    all_within = True
    for _ in range(flags.turns):
        port = free_port()
        command = [flags.pagoda, "serve", flags.model, "--device", "cpu", "--threads", flags.threads, "--port", port,
                   "--shutdown-timeout", 0]
        try:
            with RunningServer(command, port, "/dev/null"):
                figures = turn(flags, port)
        except (OSError, subprocess.TimeoutExpired) as error:
            sys.exit(f"text_beside_streams: {error}")
        alone, beside = ([1e3 * gap for of_stream in some for gap in of_stream] for some in (figures.alone, figures.beside))
        health = [1e3 * seconds for seconds in figures.health]
        is_within = within_bounds(figures)
        all_within &= is_within
        print(f"| {len(alone) / flags.alone_s:.0f} | {percentile(alone, 0.5):.1f} | {max(alone):.1f} | "
              f"{len(beside) / flags.beside_s:.0f} | {percentile(beside, 0.5):.1f} | {percentile(beside, 0.99):.1f} | "
              f"{max(beside):.1f} | {percentile(health, 0.5):.1f} | {max(health):.1f} | {figures.num_texts} | "
              f"{'yes' if is_within else 'no'} |", flush=True)
    sys.exit(0 if all_within else 1)


if __name__ == "__main__":
    main()
