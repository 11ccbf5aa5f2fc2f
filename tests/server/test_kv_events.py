"""`--kv-events-endpoint` as routers for vLLM read it: vLLM's schema by msgspec over ZeroMQ, numbers without a gap, replays."""

import subprocess
from typing import Any

import httpx
import msgspec
import pytest
import zmq
from pagoda_server import PAGODA, TINY, PagodaServer
from waiting import HANGS_AFTER_S, wait_for

BLOCK = 16


class Event(msgspec.Struct, omit_defaults=True, tag=True, forbid_unknown_fields=True):
    pass


class BlockStored(Event):
    block_hashes: list[bytes | int]
    parent_block_hash: bytes | int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[tuple[Any, ...] | None] | None = None


class BlockRemoved(Event):
    block_hashes: list[bytes | int]
    medium: str | None


class AllBlocksCleared(Event):
    pass


class EventBatch(msgspec.Struct, array_like=True, omit_defaults=True, forbid_unknown_fields=True):
    ts: float
    events: list[BlockStored | BlockRemoved | AllBlocksCleared]
    data_parallel_rank: int | None = None


DECODER = msgspec.msgpack.Decoder(EventBatch)


def numbered_prompt(number, length=50):
    return [4 + (i * 7 + number * 11) % 500 for i in range(length)]


class Subscriber:
    """Checks what each message must have; `held` is what the replica's cache has, as a router knows it."""

    def __init__(self, publishing, rcvhwm=100_000):
        self._replayed = publishing.replayed
        self._socket = zmq.Context.instance().socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, rcvhwm)
        self._socket.setsockopt(zmq.RCVTIMEO, HANGS_AFTER_S * 1000)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"kv")
        self._socket.connect(publishing.endpoint)
        self.next, self.held, self.log = None, {}, []

    def has_message(self):
        return self._socket.poll(50) != 0

    def read(self):
        topic, number, payload = self._socket.recv_multipart()
        assert topic == b"kv" and len(number) == 8
        number = int.from_bytes(number, "big")
        if self.next is None:  # it came late
            for before, batch in self._replayed([bytes(8)]):
                if before < number:
                    self.take(batch)
        assert self.next in (None, number), "a message is missing"
        self.next = number + 1
        self.take(DECODER.decode(payload))

    def take(self, batch):
        for event in batch.events:
            self.log.append(event)
            if isinstance(event, AllBlocksCleared):
                self.held = {}
            elif isinstance(event, BlockRemoved):
                for each in event.block_hashes:
                    del self.held[each]
            else:
                assert len(event.token_ids) == event.block_size * len(event.block_hashes) and event.block_size == BLOCK
                assert event.parent_block_hash is None or event.parent_block_hash in self.held
                parent = event.parent_block_hash
                for i, each in enumerate(event.block_hashes):
                    assert each not in self.held, "a block is stored twice"
                    self.held[each] = (parent, tuple(event.token_ids[i * BLOCK:(i + 1) * BLOCK]))
                    parent = each

    def read_until(self, condition):
        while not condition(self):
            self.read()

    def close(self):
        self._socket.close(0)


def ask(server, prompt, **fields):
    status, _ = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, **fields})
    assert status == 200


def has(prompt):
    """Whether a subscriber knows all full blocks of the prompt."""
    blocks = {tuple(prompt[i:i + BLOCK]) for i in range(0, len(prompt) - BLOCK + 1, BLOCK)}
    return lambda subscriber: blocks <= {tokens for _, tokens in subscriber.held.values()}


class Publishing:
    """A server that publishes below a folder."""

    def __init__(self, folder, **flags):
        self.endpoint, self.replay = f"ipc://{folder}/events", f"ipc://{folder}/replay"
        self.server = PagodaServer(kv_events_endpoint=self.endpoint, kv_events_replay_endpoint=self.replay, kv_events_topic="kv",
                                   block_size=BLOCK, **flags)

    def subscribe(self, **how):
        """A subscriber that is sent messages from now on."""
        subscriber = Subscriber(self, **how)
        number = 400
        while not subscriber.has_message():
            number += 1
            ask(self.server, numbered_prompt(number, BLOCK + 1))
        return subscriber

    def replayed(self, request):
        """Numbers and batches that come for a request."""
        with zmq.Context.instance().socket(zmq.DEALER) as socket:
            socket.setsockopt(zmq.RCVTIMEO, HANGS_AFTER_S * 1000)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(self.replay)
            for each in request[:-1]:  # are no requests
                socket.send_multipart([b"", each])
            socket.send_multipart([b"", request[-1]])
            found = []
            while True:
                empty, number, payload = socket.recv_multipart()
                assert empty == b""
                if number == b"\xff" * 8:
                    assert payload == b""
                    return found
                found.append((int.from_bytes(number, "big"), DECODER.decode(payload)))


@pytest.fixture
def publishing(tmp_path):
    made = Publishing(tmp_path)
    yield made
    made.server.close()


def test_a_router_of_vllm_knows_what_the_cache_has(publishing):
    subscriber, server = publishing.subscribe(), publishing.server
    prompt = numbered_prompt(1)
    ask(server, prompt)
    subscriber.read_until(has(prompt))
    # Hashes follow from the tokens as those of the events over HTTP do; a router may work them out.
    told = [each for each in subscriber.log if isinstance(each, BlockStored) and each.token_ids[:BLOCK] == prompt[:BLOCK]]
    assert len(told) == 1 and told[0].parent_block_hash is None and told[0].extra_keys is None and told[0].medium == "GPU"
    assert told[0].token_ids == prompt[:3 * BLOCK] and len(told[0].block_hashes) == 3
    # The same again, and under a salt, is not told: the next message is of the prompt that comes behind them.
    ask(server, prompt)
    ask(server, numbered_prompt(2), cache_salt="somebody's own")
    third = numbered_prompt(3)
    count = len(subscriber.log)
    ask(server, third)
    subscriber.read_until(has(third))
    assert len(subscriber.log) == count + 1
    assert publishing.server.is_running()
    subscriber.close()


def test_what_is_evicted_and_reset_is_told(tmp_path):
    publishing = Publishing(tmp_path, num_kv_blocks=24, max_model_len=128)
    subscriber, server = publishing.subscribe(), publishing.server
    first = numbered_prompt(0)
    for number in range(12):
        ask(server, numbered_prompt(number))
    subscriber.read_until(has(numbered_prompt(11)))
    assert any(isinstance(each, BlockRemoved) for each in subscriber.log) and not has(first)(subscriber)
    assert len(subscriber.held) <= 24
    server.post("/reset_prefix_cache", {})
    ask(server, [5])  # a step behind the reset
    subscriber.read_until(lambda each: isinstance(each.log[-1], AllBlocksCleared))
    assert subscriber.held == {}
    subscriber.close()
    server.close()


def test_clients_are_kept_apart(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("alice secret\nbob other\n")
    publishing = Publishing(tmp_path, api_key_file=keys)
    prompt = numbered_prompt(1)
    for key in ("secret", "other"):
        httpx.post(publishing.server.url + "/v1/completions", json={"prompt": prompt, "max_tokens": 1},
                   headers={"Authorization": f"Bearer {key}"}, timeout=HANGS_AFTER_S).raise_for_status()
    wait_for(lambda: sum(len(batch.events) for _, batch in publishing.replayed([bytes(8)])) == 2)
    (alice, ), (bob, ) = (batch.events for _, batch in publishing.replayed([bytes(8)]))
    assert alice.token_ids == bob.token_ids == prompt[:3 * BLOCK] and not set(alice.block_hashes) & set(bob.block_hashes)
    assert len(alice.extra_keys) == 3 and alice.extra_keys[0] != bob.extra_keys[0] and alice.extra_keys[1:] == [None, None]
    publishing.server.close()


def test_what_was_missed_is_sent_again(publishing):
    prompts = [numbered_prompt(number) for number in range(5)]
    for prompt in prompts:
        ask(publishing.server, prompt)
    wait_for(lambda: sum(len(batch.events) for _, batch in publishing.replayed([bytes(8)])) == 5)
    whole = publishing.replayed([bytes(8)])
    assert [number for number, _ in whole] == list(range(len(whole)))
    subscriber = Subscriber(publishing)
    for _, batch in whole:
        subscriber.take(batch)
    assert all(has(prompt)(subscriber) for prompt in prompts)
    last = whole[-1][0]
    # Requests that are none are passed over.
    assert [number for number, _ in publishing.replayed([b"", b"1234567", b"123456789", last.to_bytes(8, "big")])] == [last]
    assert publishing.replayed([(last + 1).to_bytes(8, "big")]) == []
    subscriber.close()


def test_who_reads_slowly_costs_the_others_nothing(publishing):
    """The slow one does not read at all."""
    slow = publishing.subscribe(rcvhwm=1)
    subscriber = publishing.subscribe()
    before = publishing.server.resident_bytes()
    for number in range(200):
        ask(publishing.server, numbered_prompt(number, 20 * BLOCK + 1))
    subscriber.read_until(has(numbered_prompt(199, 20 * BLOCK + 1)))
    assert publishing.server.resident_bytes() < before + (64 << 20)
    slow.close()
    subscriber.close()


def test_an_endpoint_that_cannot_be_bound_is_told(tmp_path):
    def serve(*flags):
        return subprocess.run([PAGODA, "serve", str(TINY), "--port", "0", *flags], capture_output=True, text=True, timeout=60, check=False)

    for endpoint, code, why in ((f"ipc://{tmp_path}/no/such/folder", 1, "No such file"), ("nonsense*", 2, "Invalid argument"),
                                ("udp://*:1", 2, "protocol is not compatible")):
        ended = serve("--kv-events-endpoint", endpoint)
        assert ended.returncode == code and f"[kv events] {endpoint}: " in ended.stderr and why in ended.stderr, ended.stderr
    alone = serve("--kv-events-replay-endpoint", "tcp://*:0")
    assert alone.returncode == 2 and "--kv-events-replay-endpoint: expected --kv-events-endpoint too" in alone.stderr
