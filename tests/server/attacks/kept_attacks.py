"""Attacks on what requests leave in memory, for whole_sizes.py: answers that nobody reads, stored conversations, fields that wait."""

import contextlib
import json
import select
import socket
import time

from attackers import ANY, CHATS, COMPLETIONS, TIMEOUT_S, Attack, Sent, exchange
from kept_requests import filled_fields, large_answers, large_tool, request_bytes, small_bodies, unseen_conversation
from whole_schemas import with_whole_schemas

NUM_CLIENTS = 60
NUM_QUEUED = 40
FIELD_BYTES = 10 << 20
HOLD_S = 1
WAITS_S = 0.1  # for an answer that may be long in coming
IS_SHORT_S = 0.03  # where hundreds of fields have their turn while one stream lasts
RESPONSES = "/v1/responses"
# Their answers last, so that they queue behind one another.
LONG = {"max_tokens": 400, "ignore_eos": True}
WAITING = {COMPLETIONS: ("CompletionRequest", {"prompt": "a", **LONG}),
           CHATS: ("ChatCompletionRequest", {"messages": [{"role": "user", "content": "a"}], **LONG}),
           RESPONSES: ("ResponseRequest", {"input": "a", "max_output_tokens": 400}),
           "/v1/messages": ("MessagesRequest", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 400})}


def held_open(port, requests, patience_s=2, hold_s=HOLD_S):
    """Sends each on a connection of its own, waits so long for its answer to begin, and takes nothing of any until all are sent;
    and so long after that; then the statuses of those that have begun."""
    with contextlib.ExitStack() as stack:
        clients = []
        for request in requests:
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(TIMEOUT_S)
            client.connect(("127.0.0.1", port))
            with contextlib.suppress(OSError):  # it is refused already
                client.sendall(request)
            select.select([client], [], [], patience_s)
            clients.append(client)
        time.sleep(hold_s)
        for client in clients:
            client.setblocking(False)
        return [status_of_now(client) for client in clients]


def status_of_now(client):
    """0: nothing has come."""
    try:
        head = client.recv(64, socket.MSG_PEEK)
    except BlockingIOError:
        return 0
    except OSError:
        return "cut"
    return int(head.split()[1]) if head else "cut"


def unread(path, body):
    request = request_bytes(path, body)
    return lambda port: Sent(held_open(port, [request] * NUM_CLIENTS))


def unread_everywhere():
    """Every other endpoint, one after another."""
    def send(port):
        document = json.loads(exchange(port, "/openapi.json", None)[1])
        statuses = set()
        for path, body in small_bodies(document):
            statuses.update(held_open(port, [request_bytes(path, body)] * NUM_CLIENTS, WAITS_S))
        return Sent(list(statuses))

    return send


def made(port, body):
    """The id of a response; None where it was refused or not kept."""
    status, answer = exchange(port, RESPONSES, json.dumps(body).encode())
    response = json.loads(answer) if status == 200 else {}
    return status, response.get("id") if response.get("store") else None


def unseen_conversations():
    """Four that are large and show little, and then as many requests as one likes that go on with them."""
    body = {"input": unseen_conversation(12_000_000), "max_output_tokens": 1}

    def send(port):
        answers = [made(port, body) for _ in range(4)]
        ids = [each for _, each in answers if each] or ["none"]
        requests = [request_bytes(RESPONSES, {"input": "a", "previous_response_id": ids[i % len(ids)]}) for i in range(NUM_CLIENTS)]
        return Sent([status for status, _ in answers] + held_open(port, requests, WAITS_S))

    return send


def stored_again_and_again():
    """One conversation, as large as is kept, that is read and gone on with."""
    body = {"input": unseen_conversation(200_000), "tools": [large_tool(200_000)], "tool_choice": "none", "max_output_tokens": 1}

    def send(port):
        status, response = made(port, body)
        if not response:
            return Sent([status], ["it was not kept"])
        goes_on = request_bytes(RESPONSES, {"input": "a", "previous_response_id": response, "max_output_tokens": 400})
        is_read = request_bytes(f"{RESPONSES}/{response}", None)
        return Sent([status, *held_open(port, [is_read] * NUM_CLIENTS + [goes_on] * NUM_CLIENTS, WAITS_S)])

    return send


def queued_fields(path):
    """Each field of the path's requests filled: where one such request is taken, 40 of them that wait."""
    name, base = WAITING[path]

    def send(port):
        document = with_whole_schemas(json.loads(exchange(port, "/openapi.json", None)[1]))
        statuses = []
        for _, body in filled_fields(document["components"]["schemas"][name], base, FIELD_BYTES):
            short = {**body, **{field: 1 for field in ("max_tokens", "max_output_tokens") if field in body}}
            status, _ = exchange(port, path, json.dumps(short).encode())
            statuses.append(status)
            if status == 200:
                statuses += held_open(port, [request_bytes(path, body)] * NUM_QUEUED, IS_SHORT_S, IS_SHORT_S)
        return Sent(statuses)

    return send


def queued(path):
    """As many of them without anything in their fields."""
    requests = [request_bytes(path, WAITING[path][1])] * NUM_QUEUED
    return lambda port: Sent(held_open(port, requests, IS_SHORT_S, IS_SHORT_S))


WAITED = ANY | {0, 404, 413, 429, 503, "cut"}
ATTACKS = [
    *(Attack(f"{NUM_CLIENTS} clients of {path} that do not read", lambda path=path, body=body: unread(path, body), WAITED)
      for path, body in large_answers(10_000_000).items()),
    Attack(f"{NUM_CLIENTS} clients of every other endpoint that do not read", unread_everywhere, WAITED | {401, 405, 501}),
    Attack("conversations that no template shows, gone on with", unseen_conversations, WAITED),
    Attack("a stored conversation that is read and gone on with", stored_again_and_again, WAITED),
    *(Attack(f"{NUM_QUEUED} requests to {path} that wait, each field filled", lambda path=path: queued_fields(path), WAITED,
             company=lambda path=path: queued(path), company_name="the same with nothing in them")
      for path in WAITING),
]
