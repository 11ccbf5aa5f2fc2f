"""The attacks in their whole sizes, for whole_sizes.py. Each makes what it sends first, and then sends it when it is told to."""

import contextlib
import http.client
import json
import resource
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

import attack_requests
from attack_requests import CHAT, ENDLESS, HONEST_CHATS, MAX_BODY_BYTES, STOPPED
from field_bounds import PATHS, further_cases, header_cases, problem, stated_cases
from whole_schemas import with_whole_schemas

TIMEOUT_S = 300
COMPLETIONS, CHATS = "/v1/completions", "/v1/chat/completions"
ENDLESS_BYTES = 64 << 20
CUT = "cut"  # instead of a status: the connection ended without an answer
WORDS = "the cat sat on a mat and thought of 12 mice; was it naive? "


class Sent(NamedTuple):
    statuses: list
    problems: list[str] = []


class Attack(NamedTuple):
    """`prepare` makes its requests and returns what sends them once to a port and returns what came of them."""
    name: str
    prepare: Callable[[], Callable[[int], Sent]]
    statuses: frozenset = frozenset({200})  # any other answer is wrong
    num_clients: int = 1
    # What the stream beside it is compared with, where that is not the stream alone: the same work without what is wrong in it.
    company: Callable[[], Callable[[int], Sent]] | None = None
    company_name: str = ""
    has_newcomer: bool = False  # somebody whose request comes in the midst of it, and how long that waits for its first token


def exchange(port, path, body):
    """The status, and the answer's bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST" if body is not None else "GET", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return CUT, b""
    finally:
        connection.close()


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)


def status_of(connection):
    """Of the answer that comes next; what follows its first line stays unread."""
    try:
        with connection.makefile("rb") as file:
            words = file.readline().split()
    except OSError:
        return CUT
    return int(words[1]) if len(words) > 1 else CUT


def encoded(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def posts(path, *bodies):
    """One after the other, each on a connection of its own."""
    data = [encoded(body) for body in bodies]
    return lambda port: Sent([exchange(port, path, body)[0] for body in data])


def many_values(value, count):
    return posts(COMPLETIONS, attack_requests.many_values(value, count))


def stopped(body):
    """Six of them, and then what others ask."""
    data = encoded({**body, "max_tokens": 1})
    mine = [encoded(chat) for chat in HONEST_CHATS]

    def send(port):
        statuses = [exchange(port, CHATS, data)[0] for _ in range(6)]
        honest = [exchange(port, CHATS, chat)[0] for chat in mine]
        return Sent(statuses, [f"honest chats after it were answered {honest}"] if honest != [200, 200] else [])

    return send


def endless(start, piece):
    def send(port):
        with connect(port) as connection:
            try:
                connection.sendall(start)
                for _ in range(ENDLESS_BYTES // len(piece)):
                    connection.sendall(piece)
            except OSError:
                pass  # the server need not listen to the end
            return Sent([status_of(connection)])

    return send


def silent(count, num_sent):
    """So many connections that announce 16 MB each, send a part of it, and then nothing: beside them a body of 1 MB is taken."""
    part = b" " * num_sent
    mine = b'{"prompt": "a", "max_tokens": 1}' + b" " * (1 << 20)

    def send(port):
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(connect(port)) for _ in range(count)]
            for connection in connections:
                with contextlib.suppress(OSError):  # it is refused already
                    connection.sendall(attack_requests.head_of_a_body(MAX_BODY_BYTES) + part)
            honest = CUT if num_sent else exchange(port, COMPLETIONS, mine)[0]
            problems = [] if num_sent or honest == 200 else [f"an honest body of 1 MB beside them was answered {honest}"]
            return Sent([status_of(connection) for connection in connections], problems)

    return send


def crowd(count):
    """So many connections that say nothing."""
    def send(port):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(connect(port))
            return Sent([exchange(port, "/health", None)[0]])

    return send


def short_connections(count):
    """So many connections, one after the other, each of which asks for /health: they take a client's core as a crowd does."""
    def send(port):
        return Sent([exchange(port, "/health", None)[0] for _ in range(count)])

    return send


def slow_reader(bytes_per_s):
    """Streams sixteen answers with all that may be said of each token, and reads them like a phone."""
    body = encoded({"prompt": "a", "n": 16, "max_tokens": 200, "ignore_eos": True, "logprobs": 20, "stream": True})

    def send(port):
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            connection.settimeout(TIMEOUT_S)
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            start, received, first, last = time.monotonic(), 0, b"", b""
            while data := connection.recv(4096):
                first = first or data
                last = (last + data)[-64:]
                received += len(data)
                time.sleep(max(0.0, start + received / bytes_per_s - time.monotonic()))
            return Sent([int(first.split()[1])], [] if b"[DONE]" in last else ["its stream was not whole"])

    return send


def each_bound(path, asks_for_samples=False):
    """Every field of the path at its bound and past it: those that ask for many samples, or all others."""
    def send(port):
        document = with_whole_schemas(json.loads(exchange(port, "/openapi.json", None)[1]))
        statuses, problems = [], []
        for make in (lambda: stated_cases(document, path), lambda: further_cases(path)):
            for case in make():
                if (case.name in MANY_SAMPLES.get(path, ())) != asks_for_samples:
                    continue
                status, answer = exchange(port, path, case.body)
                error = json.loads(answer)["error"]["message"] if status not in (200, CUT) else ""
                statuses.append(status)
                wrong = problem(case, status, error)
                problems += [wrong] if wrong else []
        return Sent(statuses, problems)

    return send


def headers_at_bounds():
    cases = list(header_cases())

    def send(port):
        statuses, problems = [], []
        for name, data, is_past in cases:
            with connect(port) as connection:
                connection.sendall(data)
                statuses.append(status_of(connection))
            if statuses[-1] != (431 if is_past else 200):
                problems.append(f"{name}{' past its bound' if is_past else ''}: {statuses[-1]}")
        return Sent(statuses, problems)

    return send


def samples(**fields):
    return posts(COMPLETIONS, {"prompt": "Write", "n": 32, "temperature": 1.5, "max_tokens": 100, **fields})


def in_front(priority):
    return posts(COMPLETIONS, {"prompt": "a", "n": 8, "max_tokens": 64, "ignore_eos": True, "priority": priority})


def large_text(num_bytes):
    return (WORDS * (num_bytes // len(WORDS) + 1))[:num_bytes]


# Fields whose bounds are that many samples.
MANY_SAMPLES = {COMPLETIONS: ("prompt", "n", "n_cmpl", "choices"), CHATS: ("n", "n_cmpl")}
# Paths whose requests may ask for so many prompts' work.
MANY_INPUTS = {"/v1/embeddings": 2048}
AMBIGUOUS = {"structured_outputs": {"grammar": "start: e\ne: /[a-z ]/ | e e | e e e"}}
REFUSED = frozenset({400})
TAKEN = frozenset({200})
ANY = TAKEN | REFUSED
BOUNDED = frozenset({200, 400, 404, 413, 429, 503})
# As many as fit a body of 16 MB, and as are taken.
VALUES = ((b"7", 8_300_000, REFUSED), (b"7", 2_000_000, TAKEN), (b'""', 5_500_000, REFUSED), (b'""', 520_000, TAKEN),
          (b"[]", 5_500_000, REFUSED), (b"[]", 520_000, TAKEN), (b"{}", 5_500_000, REFUSED), (b"{}", 520_000, TAKEN))
ATTACKS = [
    Attack("each header at its bound and past it", headers_at_bounds, frozenset({200, 431})),
    *(Attack(f"each field of {path} at its bound and past it", lambda path=path: each_bound(path), BOUNDED)
      for path in PATHS if path not in MANY_INPUTS),
    *(Attack(f"each field of {path} at its bound and past it", lambda path=path: each_bound(path), BOUNDED,
             company=lambda path=path: posts(path, {"input": ["a"] * num_inputs}), company_name=f"{num_inputs:,} inputs")
      for path, num_inputs in MANY_INPUTS.items()),
    *(Attack(f"as many samples as {path} takes, and past that", lambda path=path: each_bound(path, True), BOUNDED,
             company=lambda: posts(COMPLETIONS, attack_requests.many_samples(1)), company_name="1,024 prompts")
      for path in MANY_SAMPLES),
    Attack("100,000 names beside response_format", lambda: posts(CHATS, attack_requests.many_names(100_000))),
    Attack("100,000 properties of a tool", lambda: posts(CHATS, attack_requests.many_properties(100_000)), ANY),
    Attack("100,000 properties of a tool that must be called",
           lambda: posts(CHATS, {**attack_requests.many_properties(100_000), "tool_choice": "required"}), REFUSED),
    Attack("16 MB of names", lambda: posts(CHATS, attack_requests.many_names(690_000)), REFUSED),
    *(Attack(f"{count:,} of {value.decode()} in a body", lambda body=(value, count): many_values(*body), statuses, num_clients=2)
      for value, count, statuses in VALUES),
    Attack("16 MB of brackets", lambda: posts(CHATS, b"[" * MAX_BODY_BYTES), REFUSED),
    Attack("2,000,000 ids as a prompt", lambda: posts(COMPLETIONS, {"prompt": [7] * 2_000_000}), REFUSED),
    Attack("16 MB of text as a prompt", lambda: posts(COMPLETIONS, {"prompt": large_text(16_000_000)}), REFUSED),
    Attack("1,024 prompts with all that samples share", lambda: posts(COMPLETIONS, attack_requests.all_that_samples_share(4)),
           company=lambda: posts(COMPLETIONS, attack_requests.many_samples(4)), company_name="the prompts without that"),
    Attack("1,024 prompts said again", lambda: posts(COMPLETIONS, attack_requests.said_again(2000)), frozenset({400, 503})),
    *(Attack(f"64 MB of {name}", lambda start=start, piece=piece: endless(start, piece), frozenset({status}))
      for name, (start, piece, status) in ENDLESS.items()),
    *(Attack(f"six times a stopped {name}", lambda body=body: stopped(body), ANY) for name, body in STOPPED.items()),
    Attack("4 MB of text to /tokenize, 8 clients", lambda: posts("/tokenize", {"prompt": large_text(4 << 20)}), num_clients=8),
    Attack("256 KB without words to /tokenize, 4 clients", lambda: posts("/tokenize", {"prompt": "1." * (128 << 10)}), num_clients=4),
    Attack("4 MB without words to /tokenize", lambda: posts("/tokenize", {"prompt": "1." * (2 << 20)}), REFUSED),
    Attack("1,048,576 ids to /detokenize, 4 clients", lambda: posts("/detokenize", attack_requests.ids(1 << 20)), num_clients=4),
    Attack("4,000,000 ids to /detokenize, 4 clients", lambda: posts("/detokenize", attack_requests.ids(4_000_000)), REFUSED,
           num_clients=4),
    Attack("16 silent bodies", lambda: silent(16, 0), frozenset({408})),
    Attack("64 silent bodies", lambda: silent(64, 0), frozenset({408})),
    Attack("64 bodies of 16 MB that lack a byte", lambda: silent(64, MAX_BODY_BYTES - 1), frozenset({408, 503})),
    Attack("8,000 connections that say nothing", lambda: crowd(8000), company=lambda: short_connections(1000),
           company_name="a client that asks for /health on one after the other"),
    Attack("an ambiguous grammar, 32 samples", lambda: samples(**AMBIGUOUS), ANY,
           company=samples, company_name="32 samples without one"),
    Attack("12 clients at priority -1", lambda: in_front(-1), num_clients=12, company=lambda: in_front(0),
           company_name="12 at priority 0", has_newcomer=True),
    Attack("a client that reads like a phone", lambda: slow_reader(300_000), company=lambda: slow_reader(1e9),
           company_name="one that reads at once"),
]
