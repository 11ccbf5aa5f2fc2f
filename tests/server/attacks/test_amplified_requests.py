"""Requests that are small and ask for much: each takes time and memory in proportion, and from nobody else."""

import time

import pytest
from attack_requests import HONEST_CHATS, STOPPED, all_that_samples_share, ids, many_names, many_values, said_again
from raw_connection import RawConnection, ask, seconds_of


# Comparing each name with all before it takes 1,024 times as long for 32 times as many.
def test_many_names_take_time_in_proportion(server):
    def least(count):
        return min(seconds_of(server.port, "/v1/chat/completions", many_names(count)) for _ in range(3))

    assert least(400_000) < 200 * least(12_500)


# Two bytes of a body may be a hundred of memory.
@pytest.mark.parametrize("value", [b"7", b'""', b"[]", b"{}"], ids=repr)
def test_many_small_values_take_little_memory(server, value):
    before = server.resident_bytes()
    status, answer = ask(server.port, "/v1/completions", many_values(value, ((16 << 20) - 100) // (len(value) + 1)))
    assert status == 400 and "values that take at most" in answer["error"]["message"]
    assert ask(server.port, "/v1/completions", many_values(value, 2_000_000 if value == b"7" else 520_000))[0] == 200
    assert server.resident_bytes() - before < 300e6


def test_what_all_prompts_share_is_not_copied_for_each(server):
    before = server.resident_bytes()
    status, answer = ask(server.port, "/v1/completions", all_that_samples_share(4))
    assert status == 200, answer
    assert len(answer["choices"]) == 4096
    assert server.resident_bytes() - before < 100e6


@pytest.mark.parametrize("body", STOPPED.values(), ids=STOPPED)
def test_a_request_that_is_stopped_takes_nothing_from_others(server, body):
    before = server.resident_bytes()
    for _ in range(6):
        status, answer = ask(server.port, "/v1/chat/completions", {**body, "max_tokens": 1})
        assert status == 200 or (status == 400 and answer["error"]["message"]), answer
        for mine in HONEST_CHATS:
            assert ask(server.port, "/v1/chat/completions", mine)[0] == 200
    assert server.resident_bytes() - before < 300e6


def test_an_answer_that_says_much_again_is_refused(server):
    before = server.resident_bytes()
    status, answer = ask(server.port, "/v1/completions", said_again(2000))
    assert status in (400, 503) and "answer" in answer["error"]["message"]
    assert server.resident_bytes() - before < 300e6


def test_a_million_ids_as_text(server):
    status, answer = ask(server.port, "/detokenize", ids(1 << 20))
    assert status == 200 and len(answer["prompt"]) == 1 << 20
    assert ask(server.port, "/detokenize", ids((1 << 20) + 1))[0] == 400


def test_large_texts_keep_no_probe_waiting(server):
    busy = []
    for _ in range(4):
        busy.append(RawConnection(server.port))
        busy[-1].post("/tokenize", {"prompt": "of words " * 116_508})
    start = time.monotonic()
    slowest = 0
    for path in ("/health", "/metrics"):
        probe = RawConnection(server.port)
        asked = time.monotonic()
        probe.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert probe.read_head()[0] == 200
        slowest = max(slowest, time.monotonic() - asked)
        probe.close()
    for connection in busy:
        assert connection.read()[0] == 200
        connection.close()
    assert slowest < (time.monotonic() - start) / 4
