"""Requests at the bounds that /openapi.json and SECURITY.md state, and one past them."""

import json
from typing import NamedTuple

from attack_requests import MAX_BODY_BYTES

# Whatever length a field asks for, the answer ends soon.
SHORT = {"max_tokens": 1, "stop": [" ", "\n", "a", "e"]}
PATHS = {"/v1/completions": ("CompletionRequest", {"prompt": "a", **SHORT}),
         "/v1/chat/completions": ("ChatCompletionRequest", {"messages": [{"role": "user", "content": "a"}], **SHORT}),
         "/v1/embeddings": ("EmbeddingRequest", {"input": "a"}),
         "/tokenize": ("TokenizeRequest", {"prompt": "a"}),
         "/detokenize": ("DetokenizeRequest", {"tokens": [97]})}


class Case(NamedTuple):
    name: str
    body: bytes
    is_past: int


def smallest(schema):
    """The shortest value that a schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    if "const" in schema:
        return schema["const"]
    if "anyOf" in schema:
        return smallest(schema["anyOf"][0])
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "string":
        return "x" * schema.get("minLength", 1)
    if kind == "array":
        return [smallest(schema["items"])] * schema.get("minItems", 0)
    if kind == "object":
        return {name: smallest(schema["properties"][name]) for name in schema.get("required", [])}
    return max(schema.get("minimum", 0), 0) if kind in ("integer", "number") else True


def at_the_bounds(schema):
    """(value, whether it is past) at and one past each upper bound of a schema's top level."""
    for inner in schema.get("anyOf", []):
        yield from at_the_bounds(inner)
    for past in (0, 1):
        if "maxLength" in schema:
            yield "x" * (schema["maxLength"] + past), past
        if "maxItems" in schema:
            yield [smallest(schema["items"])] * (schema["maxItems"] + past), past
        if "maximum" in schema:
            yield schema["maximum"] + past, past
        if "maxProperties" in schema:
            yield {str(i): 1 for i in range(schema["maxProperties"] + past)}, past


def stated_cases(document, path):
    """Of each field of the path's requests, by the document of /openapi.json."""
    name, base = PATHS[path]
    for field, schema in document["components"]["schemas"][name]["properties"].items():
        for value, is_past in at_the_bounds(schema):
            yield Case(field, json.dumps({**base, field: value}).encode(), is_past)


def further_cases(path):
    """Of what no schema states: what lists hold together, what stands in them, and the body itself."""
    base = PATHS[path][1]
    for past in (0, 1):
        padding = b" " * (MAX_BODY_BYTES + past - len(json.dumps(base)))
        yield Case("body", json.dumps(base).encode() + padding, past)
        # The body's own object is the first of 64 levels.
        yield Case("depth", json.dumps(base).encode()[:-1] + b', "user": ' + b"[" * (63 + past) + b"]" * (63 + past) + b"}", past)
        fields = {}
        if path == "/v1/completions":
            fields = {"choices": {"prompt": ["a"] * 1024, "n": 4 + past},
                      "stop strings together": {"stop": ["x" * 64] * 63 + ["x" * (64 + past)]},
                      "bad words together": {"bad_words": ["x" * 1024] * 16 + ["y"] * past},
                      "grammar": {"grammar": 'root ::= "' + "x" * ((1 << 20) + past - 11) + '"'}}
        if path == "/v1/chat/completions":
            fields = {"parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * (4096 + past)}]}}
        for name, value in fields.items():
            yield Case(name, json.dumps({**base, **value}).encode(), past)


def header_cases():
    """(name, request, whether it is past) of what stands before a body."""
    for past in (0, 1):
        start, end = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ", b"\r\n\r\n"
        yield "header", start + b"x" * ((32 << 10) + past - len(start) - len(end)) + end, past
        yield "header fields", start + b"x" + b"\r\nY: y" * (125 + past) + end, past


def problem(case, status, error):
    """What is wrong with an answer; None if nothing is."""
    said = f"{case.name}{' past its bound' if case.is_past else ''}: {status} {error[:200]!r}"
    if len(case.body) > MAX_BODY_BYTES:
        return None if status == 413 else said
    if status == 200:
        return said if case.is_past else None
    # What a schema can't say: how long the context is, how many answers together, what a grammar means.
    return None if status in (400, 404, 429, 503) and error else said
