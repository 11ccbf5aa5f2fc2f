"""Many requests at a time: who waits, who is refused, and who goes first."""

import asyncio
import re
import time

from many_streams import many_streams
from pagoda_server import PagodaServer
from stream_client import complete, read_head
from waiting import wait_for, wait_until

LONG = {"max_tokens": 1900, "ignore_eos": True, "temperature": 0}


def test_2000_streams_at_once_are_2000_right_answers():
    server = PagodaServer(max_queue=2048)
    figures = many_streams(server, 2000, 12)
    assert figures["right"] == 2000, figures
    wait_for(lambda: server.free_share() == 1)
    server.close()


async def seconds_of_health(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    start = time.monotonic()
    assert (await read_head(reader))[0] == 200
    writer.close()
    return time.monotonic() - start


def test_a_full_queue_refuses_at_once():
    """Within 50 ms, or five times as long as /health takes meanwhile where the machine has others to serve."""
    server = PagodaServer(max_queue=100, max_num_seqs=1)

    async def fill(i):
        while True:
            answer = await complete(server.port, prompt=[5, i], **LONG)
            if answer.status == 429:
                await asyncio.sleep(0.1)

    async def run():
        fillers = [asyncio.create_task(fill(i)) for i in range(110)]
        refusals, others = [], []
        while len(refusals) < 100:
            others.append(await seconds_of_health(server.port))
            try:
                answer = await asyncio.wait_for(complete(server.port, prompt=[7, len(refusals)], max_tokens=4), timeout=1)
            except asyncio.TimeoutError:
                # It found a place free and waits for its turn. The fillers take that place before the next one asks.
                await asyncio.sleep(0.2)
                continue
            if answer.status == 429:
                refusals.append(answer)
        for filler in fillers:
            filler.cancel()
        await asyncio.gather(*fillers, return_exceptions=True)
        return refusals, sorted(others)

    refusals, others = asyncio.run(run())
    assert all(int(refusal.headers["retry-after"]) >= 1 for refusal in refusals)
    times = sorted(refusal.seconds for refusal in refusals)
    usual = others[len(others) * 95 // 100]
    print(f"429 after {1e3 * times[50]:.1f} ms, at most {1e3 * times[-1]:.1f} ms; /health after {1e3 * usual:.1f} ms")
    assert times[94] < max(0.05, 5 * usual)
    wait_for(lambda: server.free_share() == 1)
    server.close()


def test_a_hundred_requests_of_many_samples_fit_the_queue():
    server = PagodaServer()

    async def run():
        request = {"prompt": [5, 6], "n": 16, "max_tokens": 2, "ignore_eos": True}
        return await asyncio.gather(*(complete(server.port, **request) for _ in range(128)))

    answers = asyncio.run(run())
    assert [answer.status for answer in answers] == [200] * 128
    assert all(answer.finished and not answer.error for answer in answers)
    server.close()


def test_a_request_of_more_prompts_than_the_queue_holds_is_not_asked_to_come_again():
    server = PagodaServer(max_queue=4)
    status, answer = server.post("/v1/completions", {"prompt": ["a"] * 5, "max_tokens": 1})
    assert status == 400 and "at most 4 prompts" in answer["error"]["message"], answer
    status, answer = server.post("/v1/completions", {"prompt": ["a"] * 4, "max_tokens": 1, "n": 8})
    assert status == 200 and len(answer["choices"]) == 32
    server.close()


def test_requests_start_by_priority_then_arrival():
    server = PagodaServer(max_num_seqs=4, log_level="debug")

    def num_in_engine():
        metrics = server.metrics()
        return metrics["num_requests_running"] + metrics["num_requests_waiting"]

    async def run():
        # None starts before all have come: others of a better priority take the engine until then.
        others = [asyncio.create_task(complete(server.port, prompt=[7, i], priority=-1, **LONG)) for i in range(60)]

        def num_others():
            return sum(not other.done() for other in others)

        await wait_until(lambda: num_in_engine() >= num_others())
        requests = [{"prompt": [5, i], "max_tokens": 20 + i % 30, "ignore_eos": True, "priority": i % 3} for i in range(300)]
        tasks = [asyncio.create_task(complete(server.port, **request)) for request in requests]
        await wait_until(lambda: num_in_engine() >= 300 + num_others())
        assert num_others() > 4
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        return await asyncio.gather(*tasks)

    assert all(answer.finished and not answer.error for answer in asyncio.run(run()))
    most_turns = server.metrics()["priority_turns_total"]
    server.close()
    starts = re.findall(r"request (\d+) of priority (-?\d+) starts", server.log.read_text())
    starts = [(int(priority), int(request)) for request, priority in starts if int(request) > 60]
    assert sorted(request for _, request in starts) == list(range(61, 361))
    # Those that had been overtaken for long start before all others.
    order = [start for start in starts if start[0] >= 0]
    assert len(order) >= 300 - most_turns and most_turns < 20
    assert order == sorted(order)
