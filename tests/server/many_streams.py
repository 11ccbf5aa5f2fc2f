#!/usr/bin/env python3
"""Opens very many streams at once and compares each answer with that of its prompt alone.

  PAGODA_BINARY=build/release/pagoda PAGODA_SOURCE_DIR=. tests/server/many_streams.py [--streams 2000] [--model MODEL]

Prints one JSON line and exits 1 unless all answers are right.
"""

import argparse
import asyncio
import json
import sys
import time

from pagoda_server import TINY, PagodaServer
from stream_client import complete, read_head, request_bytes

NUM_PROMPTS = 100


def make_prompt(i):
    return [5 + i % NUM_PROMPTS, 60 + i % 7, 90 + i % 11]


async def read_text(reader):
    """The answer's text; an answer of another status, or without its end, is none."""
    status, _ = await read_head(reader)
    events = [line for line in (await reader.read()).decode().splitlines() if line.startswith("data: ")]
    if status != 200 or events[-1] != "data: [DONE]":
        return status, None
    return status, "".join(json.loads(event[len("data: "):])["choices"][0]["text"] for event in events[:-1])


async def ask_all(port, num_streams, output_len):
    """How many answers were right, and how many had each status."""
    fields = {"max_tokens": output_len, "ignore_eos": True, "temperature": 0}
    prompts = [make_prompt(i) for i in range(num_streams)]
    alone = {}
    for prompt in prompts:
        if tuple(prompt) not in alone and len(alone) < NUM_PROMPTS:
            alone[tuple(prompt)] = (await complete(port, prompt=prompt, **fields)).text
    prompts = [prompt if tuple(prompt) in alone else make_prompt(i % NUM_PROMPTS) for i, prompt in enumerate(prompts)]
    connected = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in prompts))
    for (_, writer), prompt in zip(connected, prompts):
        writer.write(request_bytes("/v1/completions", {"prompt": prompt, "stream": True, **fields}))
    right, statuses = 0, {}
    for (reader, writer), prompt in zip(connected, prompts):
        status, text = await read_text(reader)
        statuses[status] = statuses.get(status, 0) + 1
        right += text == alone[tuple(prompt)]
        writer.close()
    return right, statuses


def many_streams(server, num_streams, output_len):
    start = time.monotonic()
    right, statuses = asyncio.run(ask_all(server.port, num_streams, output_len))
    return {"streams": num_streams, "right": right, "statuses": statuses, "seconds": round(time.monotonic() - start, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--output-len", type=int, default=8)
    parser.add_argument("--model", default=TINY)
    flags = parser.parse_args()
    server = PagodaServer(flags.model, max_queue=2048)
    figures = many_streams(server, flags.streams, flags.output_len)
    server.close()
    print(json.dumps(figures))
    sys.exit(0 if figures["right"] == flags.streams else 1)


if __name__ == "__main__":
    main()
