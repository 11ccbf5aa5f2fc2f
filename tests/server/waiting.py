"""Waiting for what must come. The limit guards against hanging, not against slow machines."""

import asyncio
import time

# Ten times what the longest of these waits takes on two quiet cores, the end of a server with a thousand requests.
HANGS_AFTER_S = 600


def wait_for(condition):
    deadline = time.monotonic() + HANGS_AFTER_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


async def wait_until(condition):
    deadline = time.monotonic() + HANGS_AFTER_S
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    assert condition()
