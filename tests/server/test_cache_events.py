"""What `--prefix-cache-events` tells, as a router reads it: digests that it works out itself of a prompt's tokens."""

import hashlib
import struct

import httpx
import pytest
from pagoda_server import PagodaServer

PATH = "/v1/prefix_cache/events/"
PROMPT = [4 + i * 7 % 500 for i in range(50)]


def page(server, after=0):
    return httpx.get(f"{server.url}{PATH}{after}").raise_for_status().json()


def digests(root, block_size, tokens):
    """Those of its full blocks."""
    found, parent = [], bytes.fromhex(root)
    for begin in range(0, len(tokens) - block_size + 1, block_size):
        parent = hashlib.sha256(parent + struct.pack(f"<{block_size}i", *tokens[begin:begin + block_size])).digest()
        found.append(parent.hex())
    return found


def ask(server, prompt, **fields):
    status, _ = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, **fields})
    assert status == 200


@pytest.fixture
def server():
    made = PagodaServer(prefix_cache_events=True)
    yield made
    made.close()


def test_a_router_finds_a_prompt_by_digests_of_its_own(server):
    first = page(server)
    assert first["is_whole"] and first["events"] == []
    ask(server, PROMPT)
    ask(server, PROMPT, cache_salt="somebody's own")
    new = page(server, first["next"])
    assert not new["is_whole"] and {event["type"] for event in new["events"]} == {"stored"}
    expected = digests(new["root"], new["block_size"], PROMPT)
    assert [event["digest"] for event in new["events"]] == expected  # and none of the salt's
    assert [event["parent"] for event in new["events"]] == [new["root"], *expected[:2]]
    assert httpx.post(server.url + "/reset_prefix_cache").status_code == 200
    ask(server, [5])  # a step behind the reset
    gone = page(server, new["next"])
    assert {event["digest"] for event in gone["events"] if event["type"] == "removed"} == set(expected)
    assert page(server)["events"] == []


def test_replicas_and_restarts_have_the_same_digests(server):
    other = PagodaServer(prefix_cache_events=True)
    for each in (server, other):
        ask(each, PROMPT)
    here, there = page(server), page(other)
    assert {event["digest"] for event in here["events"]} == {event["digest"] for event in there["events"]}
    # A reader who goes on at another server than it began at is told all.
    assert page(other, here["next"])["is_whole"]
    other.close()


def test_they_are_off_and_want_a_key(tmp_path):
    plain = PagodaServer()
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        page(plain)
    plain.close()
    keys = tmp_path / "keys"
    keys.write_text("secret\n")
    guarded = PagodaServer(prefix_cache_events=True, api_key_file=keys)
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        page(guarded)
    guarded.close()
