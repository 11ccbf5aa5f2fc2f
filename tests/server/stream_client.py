"""Just enough of an HTTP client, for asyncio and for thousands of connections at a time: one request a connection."""

import asyncio
import json
import time
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str  # of a 200: all choices' texts; else the body
    error: str  # the message of an error event or body
    finished: bool  # the stream ended with [DONE], or the whole body came
    seconds: float  # from sending to the status line


def request_bytes(path, body):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n").encode() + data


async def read_head(reader):
    status = int((await reader.readline()).split()[1])
    headers = {}
    while (line := (await reader.readline()).strip()):
        name, value = line.decode().split(":", 1)
        headers[name.lower()] = value.strip()
    return status, headers


async def read_events(reader):
    """The data of each event, to the end of the body."""
    async for line in reader:
        if line.startswith(b"data: "):
            yield line[len("data: "):].strip().decode()


async def complete(port, *, on_event=None, **fields):
    """A streamed completion. `on_event(number)` may raise to go away."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request_bytes("/v1/completions", {"stream": True, **fields}))
        start = time.monotonic()
        status, headers = await read_head(reader)
        seconds = time.monotonic() - start
        if status != 200:
            body = (await reader.read()).decode()
            return Answer(status, headers, body, json.loads(body)["error"]["message"], True, seconds)
        text, error, finished, number = "", "", False, 0
        async for data in read_events(reader):
            if data == "[DONE]":
                finished = True
                continue
            event = json.loads(data)
            if "error" in event:
                error = event["error"]["message"]
                continue
            text += "".join(choice["text"] for choice in event["choices"])
            number += 1
            if on_event:
                on_event(number)
        return Answer(status, headers, text, error, finished, seconds)
    finally:
        writer.close()
