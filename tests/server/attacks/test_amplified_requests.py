"""Requests that are small and ask for much: each takes time and memory in proportion, and from nobody else."""

import json
import time

import pytest
from fake_server import FakeServer
from raw_connection import RawConnection

CHAT = {"messages": [{"role": "user", "content": "say hi"}]}


@pytest.fixture(scope="module")
def server():
    fake = FakeServer(max_queue=2048)
    yield fake
    assert fake.is_running()
    fake.close()


def ask(server, path, body):
    connection = RawConnection(server.port)
    start = time.monotonic()
    connection.post(path, body)
    status, answer = connection.read()
    connection.close()
    return status, answer, time.monotonic() - start


def seconds_with_names(server, num_names):
    body = {**CHAT, "response_format": {"type": "json_object"}, "max_tokens": 1, "metadata": {f"name{i}": i for i in range(num_names)}}
    status, answer, seconds = ask(server, "/v1/chat/completions", body)
    assert status == 200, answer
    return seconds


# Where each name is compared with all before it, eight times as many take 64 times as long.
def test_many_names_take_time_in_proportion(server):
    few = min(seconds_with_names(server, 50_000) for _ in range(3))
    many = min(seconds_with_names(server, 400_000) for _ in range(3))
    assert many < 24 * few


def test_what_all_prompts_share_is_not_copied_for_each(server):
    before = server.resident_bytes()
    body = {"prompt": ["a"] * 1024, "n": 4, "max_tokens": 1, "stop_token_ids": list(range(100, 228)), "cache_salt": "s" * 1024,
            "stop": ["x" * 64] * 64, "allowed_token_ids": list(range(256)) * 100}
    status, answer, _ = ask(server, "/v1/completions", body)
    assert status == 200, answer
    assert len(answer["choices"]) == 4096
    assert server.resident_bytes() - before < 100e6


@pytest.mark.parametrize("body", [
    {"messages": [{"role": "user", "content": "x"}] * 4096, "max_tokens": 1},
    {"messages": [{"role": "user", "content": "x" * 1_200_000}], "max_tokens": 1},
    {"messages": [{"role": "user", "content": "x", "tool_calls": [[[{"a": list(range(100_000))}]]]}], "max_tokens": 1},
    {**CHAT, "structured_outputs": {"grammar": "root ::= " + " | ".join(f'[a-z]{{0,{i}}} "c{i}"' for i in range(1500))}},
    {**CHAT, "structured_outputs": {"regex": "(a{0,1000}b{0,1000}){0,1000}"}},
    {**CHAT, "structured_outputs": {"json": {"anyOf": [{"properties": {f"k{i}": {}}, "required": [f"k{i}"]} for i in range(1500)]}}},
], ids=["messages", "message", "unread part", "grammar", "expression", "schema"])
def test_a_request_that_is_stopped_takes_nothing_from_others(server, body):
    before = server.resident_bytes()
    for _ in range(6):
        status, answer, _ = ask(server, "/v1/chat/completions", {**body, "max_tokens": 1})
        assert status == 200 or (status == 400 and answer["error"]["message"]), answer
        for mine in (CHAT, {**CHAT, "structured_outputs": {"regex": "[a-z]+"}, "max_tokens": 1}):
            assert ask(server, "/v1/chat/completions", mine)[0] == 200
    assert server.resident_bytes() - before < 300e6


def test_an_answer_that_says_much_again_is_refused(server):
    before = server.resident_bytes()
    body = {"prompt": ["a" * 2000] * 1024, "n": 4, "max_tokens": 1, "echo": True, "return_token_ids": True, "logprobs": 5}
    status, answer, _ = ask(server, "/v1/completions", body)
    assert status in (400, 429) and "answer" in answer["error"]["message"]
    assert server.resident_bytes() - before < 300e6


def test_half_a_million_ids_as_text(server):
    body = {"tokens": [97] * (1 << 20)}
    status, answer, _ = ask(server, "/detokenize", body)
    assert status == 200 and len(answer["prompt"]) == 1 << 20
    body["tokens"].append(97)
    assert ask(server, "/detokenize", body)[0] == 400


def test_large_texts_keep_no_probe_waiting(server):
    busy = []
    for _ in range(4):
        busy.append(RawConnection(server.port))
        busy[-1].post("/tokenize", {"prompt": "x" * (1 << 20)})
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
