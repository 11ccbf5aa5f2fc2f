"""What is sent to stop a server, fill its memory or hold up others: the tests send a little of it, whole_sizes.py all."""

CHAT = {"messages": [{"role": "user", "content": "say hi"}]}
CHUNKED = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
FILLER = b"x" * (64 << 10)
MAX_BODY_BYTES = 16 << 20

# What stands around a body, without end: what is sent once, what is sent again and again, and the status of the answer.
ENDLESS = {
    "extension": (CHUNKED + b"1;", FILLER, 413),
    "quoted extension": (CHUNKED + b"1;a=\"", FILLER, 413),
    "extensions": (CHUNKED, b"1;" + FILLER + b"\r\nx\r\n", 413),
    "size": (CHUNKED, b"0" * len(FILLER), 413),
    "trailer line": (CHUNKED + b"0\r\nX: ", FILLER, 413),
    "trailer lines": (CHUNKED + b"0\r\n", b"X: y\r\n" * 10_000, 413),
    "header line": (b"GET / HTTP/1.1\r\nX: ", FILLER, 431),
    "target": (b"GET /", FILLER, 431),
}

# Chats whose rendering or grammar is stopped, or is large and not stopped yet.
STOPPED = {
    "messages": {"messages": [{"role": "user", "content": "x"}] * 4096},
    "message": {"messages": [{"role": "user", "content": "x" * 1_200_000}]},
    "unread part": {"messages": [{"role": "user", "content": "x", "tool_calls": [[[{"a": list(range(100_000))}]]]}]},
    "grammar": {**CHAT, "structured_outputs": {
        "grammar": "root ::= " + " | ".join(f'[a-z]{{0,{i}}} "c{i}"' for i in range(1500))}},
    "expression": {**CHAT, "structured_outputs": {"regex": "(a{0,1000}b{0,1000}){0,1000}"}},
    "schema": {**CHAT, "structured_outputs": {
        "json": {"anyOf": [{"properties": {f"k{i}": {}}, "required": [f"k{i}"]} for i in range(1500)]}}},
}

HONEST_CHATS = [{**CHAT, "max_tokens": 1}, {**CHAT, "structured_outputs": {"regex": "[a-z]+"}, "max_tokens": 1}]


def many_names(count):
    """A chat whose object has so many names."""
    names = {f"name{i}": i for i in range(count)}
    return {**CHAT, "response_format": {"type": "json_object"}, "max_tokens": 1, "metadata": names}


def many_properties(count):
    """A chat with a tool of so many properties, each of them required."""
    names = [f"p{i * 7919 % 1_000_003}" for i in range(count)]
    parameters = {"type": "object", "properties": dict.fromkeys(names, {}), "required": names}
    return {**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}], "max_tokens": 1}


def many_values(value, count):
    """A completion's body with one short value so many times."""
    return b'{"prompt": "a", "max_tokens": 1, "metadata": [' + (value + b",") * count + b"0]}"


def many_samples(n):
    """1,024 prompts of n samples each, and nothing that they share."""
    return {"prompt": ["a"] * 1024, "n": n, "max_tokens": 1, "temperature": 0}


def all_that_samples_share(n):
    """The same, with as much as a request may bring for all of them."""
    return {**many_samples(n), "stop_token_ids": list(range(100, 228)), "cache_salt": "s" * 1024, "stop": ["x" * 64] * 64,
            "allowed_token_ids": list(range(256)) * 100}


def said_again(num_chars):
    """1,024 prompts of so many characters whose answers say them again, with their ids and probabilities."""
    return {"prompt": ["a" * num_chars] * 1024, "n": 4, "max_tokens": 1, "echo": True, "return_token_ids": True, "logprobs": 5}


def ids(count):
    return {"tokens": [97] * count}


def head_of_a_body(num_bytes, *fields):
    """A request's header, that announces so much."""
    head = ["POST /v1/completions HTTP/1.1", "Host: localhost", f"Content-Length: {num_bytes}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n"
