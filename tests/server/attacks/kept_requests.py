"""Requests that leave much in memory: answers that nobody reads, responses that are stored, fields of requests that wait."""

import json

from attack_requests import head_of_a_body

WORDS = "the cat sat on a mat and thought of 12 mice; was it naive? "
CHAT = [{"role": "user", "content": "say hi"}]


def large_tool(num_bytes):
    return {"type": "function", "name": "f", "description": "x" * num_bytes}


def large_answers(num_bytes):
    """For each path whose answer says much of what it is sent: a body of about so many bytes."""
    text = (WORDS * (num_bytes // len(WORDS) + 1))[:min(num_bytes, 4 << 20)]
    tools = {"tools": [large_tool(num_bytes)], "tool_choice": "none", "input": "say hi"}
    return {"/tokenize": {"prompt": text, "return_token_strs": True},
            "/detokenize": {"tokens": [97] * min(num_bytes // 4, 1 << 20)},
            "/apply-template": {"messages": [{"role": "user", "content": "x" * num_bytes}]},
            "/v1/responses": {**tools, "stream": True}}


def small_bodies(document):
    """(path, body, or None for GET) of every other path of /openapi.json, with what its requests need."""
    fields = {"messages": CHAT, "prompt": "say hi", "input": "say hi", "max_tokens": 1, "stream": True, "query": "a",
              "documents": ["a"], "text_1": "a", "text_2": "b", "tokens": [97], "input_prefix": "a", "input_suffix": "b"}
    for path, methods in document["paths"].items():
        if "get" in methods:
            yield path.replace("{response_id}", "none").replace("{model}", "none").replace("{after}", "0"), None
        elif "post" in methods and path not in large_answers(0):
            content = methods["post"].get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "/").rsplit("/", 1)[1]
            known = document["components"]["schemas"].get(name, {}).get("properties", {})
            yield path, {field: value for field, value in fields.items() if field in known}


def request_bytes(path, body):
    """A request as it is sent; `body` is None for GET."""
    if body is None:
        return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    data = json.dumps(body).encode()
    return head_of_a_body(len(data)).replace(b"/v1/completions", path.encode(), 1) + data


def unseen_conversation(num_bytes):
    """A conversation of which a template shows little."""
    return [{"type": "function_call_output", "call_id": "x" * num_bytes, "output": "a"}, {"role": "user", "content": "say hi"}]


def filled_fields(schema, base, num_bytes):
    """(field, body) for each field of a request that may hold so much, as its schema has it."""
    long = "x" * num_bytes
    fillings = {"string": long, "object": {"k": long}, "array": [long]}
    for field, of_field in schema["properties"].items():
        kinds = [each.get("type") for each in (of_field, *of_field.get("anyOf", []))]
        flat = {kind for each in kinds for kind in (each if isinstance(each, list) else [each])}
        filled = [value for kind, value in fillings.items() if kind in flat] or [long]
        if field == "tools":
            filled = [[large_tool(num_bytes) | {"function": {"name": "f", "description": long}}]]
        if field == "messages" and field in base:
            filled = [[{"role": "assistant", "content": "a", "reasoning_content": long}, *base[field]]]
        if field == "input" and field in base:
            filled = [[*unseen_conversation(num_bytes)[:1], {"role": "user", "content": base[field]}]]
        for value in filled:
            yield field, {**base, field: value, **({"tool_choice": "none"} if field == "tools" else {})}
