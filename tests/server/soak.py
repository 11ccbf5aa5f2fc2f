#!/usr/bin/env python3
"""Sends a server very many requests, cancels a third of them at random moments, and looks at what is left of them.

  PAGODA_BINARY=build/release/pagoda PAGODA_SOURCE_DIR=. tests/server/soak.py [--requests 100000] [--model MODEL]

Prints one JSON line and exits 1 unless every answer was whole, and in the end all KV blocks are free, as many descriptors are
open and threads run as at the start, and resident memory is within 20 MB of where it was after the first 1,000 requests.
"""

import argparse
import asyncio
import json
import random
import sys
import time

from pagoda_server import TINY, PagodaServer
from stream_client import complete, read_head, request_bytes
from waiting import HANGS_AFTER_S

ALLOWED_GROWTH_BYTES = 20 << 20
NUM_FIRST = 1000
# So few that the first requests use them all: what is never used is never resident, and a prefix cache uses every block once
# before it evicts one.
KV_BYTES = 4 << 20


class Cancelled(Exception):
    pass


def random_request(chance, vocabulary):
    request = {"prompt": [chance.randrange(3, vocabulary) for _ in range(chance.choice([1, 3, 10, 40, 100]))],
               "max_tokens": chance.choice([1, 2, 5, 12, 30]), "temperature": chance.choice([0, 1]),
               "seed": chance.randrange(1 << 30), "ignore_eos": chance.random() < 0.5}
    for field, value in (("n", 3), ("logprobs", 3), ("echo", True), ("stop", ["e", "zz"]),
                         ("repetition_penalty", 1.2), ("return_token_ids", True)):
        if chance.random() < 0.1:
            request[field] = value
    return request


async def ask_whole(port, request):
    """Without a stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes("/v1/completions", request))
        status, _ = await read_head(reader)
        body = await reader.read()
        return status == 200 and len(json.loads(body)["choices"]) == request.get("n", 1)
    finally:
        writer.close()


async def ask_and_leave(port, request, chance):
    """Goes away before, while or after the answer comes; politely or with a reset."""
    if chance.random() < 0.5:
        last = chance.randrange(1, 8)

        def leave(number):
            if number == last:
                raise Cancelled

        try:
            await complete(port, on_event=leave, **request)
        except Cancelled:
            pass
        return
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = request_bytes("/v1/completions", {"stream": chance.random() < 0.5, **request})
    writer.write(sent[:chance.randrange(len(sent))] if chance.random() < 0.1 else sent)
    await asyncio.sleep(chance.random() ** 3 * 0.2)
    if chance.random() < 0.5:
        writer.transport.abort()
    else:
        writer.close()


class Soak:
    def __init__(self, server, flags):
        self.server = server
        self.flags = flags
        self.chance = random.Random(flags.seed)
        self.whole = self.cancelled = 0
        self.wrong = []

    async def one(self):
        request = random_request(self.chance, self.flags.vocabulary)
        if self.chance.random() < 1 / 3:
            self.cancelled += 1
            await ask_and_leave(self.server.port, request, self.chance)
            return
        if self.chance.random() < 0.3:
            if self.chance.random() < 0.2:
                request["prompt_logprobs"] = 1
            is_whole = await ask_whole(self.server.port, request)
        else:
            answer = await complete(self.server.port, **request)
            is_whole = answer.status == 200 and answer.finished and not answer.error
        self.whole += is_whole
        if not is_whole and len(self.wrong) < 5:
            self.wrong.append(request)

    async def run(self, count):
        left = iter(range(count))

        async def worker():
            for _ in left:
                await self.one()

        await asyncio.gather(*(worker() for _ in range(self.flags.concurrency)))

    def state_at_rest(self):
        deadline = time.monotonic() + HANGS_AFTER_S
        while time.monotonic() < deadline:
            metrics = self.server.metrics()
            busy = metrics["num_requests_running"] + metrics["num_requests_waiting"]
            if not busy and self.server.num_descriptors() <= self.descriptors:
                break
            time.sleep(0.05)
        return {"kv_cache_usage": metrics["kv_cache_usage_perc"], "resident_bytes": self.server.resident_bytes(),
                "threads": self.server.num_threads(), "descriptors": self.server.num_descriptors()}


def soak(server, flags):
    """The figures of a run; "ok" says whether they are what they must be."""
    run = Soak(server, flags)
    server.metrics()
    time.sleep(0.2)
    run.descriptors = server.num_descriptors()
    start = run.state_at_rest()
    asyncio.run(run.run(min(NUM_FIRST, flags.requests)))
    first = run.state_at_rest()
    began = time.monotonic()
    asyncio.run(run.run(max(0, flags.requests - NUM_FIRST)))
    end = run.state_at_rest()
    figures = {"requests": flags.requests, "seed": flags.seed, "whole": run.whole, "cancelled": run.cancelled,
               "seconds": round(time.monotonic() - began, 1), "growth_bytes": end["resident_bytes"] - first["resident_bytes"],
               "start": start, "after_first": first, "end": end, "wrong": run.wrong}
    kept = ("kv_cache_usage", "threads", "descriptors")
    figures["ok"] = (run.whole + run.cancelled == flags.requests and all(end[name] == start[name] for name in kept)
                     and figures["growth_bytes"] <= ALLOWED_GROWTH_BYTES)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--model", default=TINY)
    parser.add_argument("--vocabulary", type=int, default=500, help="token ids of prompts are below")
    parser.add_argument("--kv-cache-memory-bytes", type=int, default=KV_BYTES)
    parser.add_argument("--concurrency", type=int, default=48)
    parser.add_argument("--seed", type=int, default=20)
    flags = parser.parse_args()
    server = PagodaServer(flags.model, max_queue=4096, kv_cache_memory_bytes=flags.kv_cache_memory_bytes)
    figures = soak(server, flags)
    server.close()
    print(json.dumps(figures))
    sys.exit(0 if figures["ok"] else 1)


if __name__ == "__main__":
    main()
