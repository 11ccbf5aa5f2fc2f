"""Every field of every request at the bound that /openapi.json states, and one past it: an answer in words, and little memory."""

import json
import urllib.error
import urllib.request

import pytest
from fake_server import FakeServer

MAX_MEMORY_BYTES = 300e6  # over what the server takes at rest
MAX_BODY_BYTES = 16 << 20
PATHS = {"/v1/completions": ("CompletionRequest", {"prompt": "a", "max_tokens": 1}),
         "/v1/chat/completions": ("ChatCompletionRequest", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1}),
         "/tokenize": ("TokenizeRequest", {"prompt": "a"}),
         "/detokenize": ("DetokenizeRequest", {"tokens": [97]})}


@pytest.fixture(scope="module")
def server():
    fake = FakeServer(max_queue=1024)
    yield fake
    assert fake.is_running()
    fake.close()


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


def post(server, path, body):
    request = urllib.request.Request(server.url + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            answer.read()
            return answer.status, {}
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]


@pytest.mark.parametrize("path", PATHS)
def test_each_field_at_its_bound_and_past_it(server, path):
    name, base = PATHS[path]
    with urllib.request.urlopen(server.url + "/openapi.json") as answer:
        document = json.load(answer)
    at_rest = server.resident_bytes()
    sent = set()
    for field, schema in document["components"]["schemas"][name]["properties"].items():
        for value, is_past in at_the_bounds(schema):
            encoded = json.dumps({**base, field: value}).encode()
            status, error = post(server, path, encoded)
            said = f"{field}: {status} {error}"
            if len(encoded) > MAX_BODY_BYTES:
                assert status == 413, said
            elif status != 200:
                # What a schema can't say: how long the context is, how many answers together, what a grammar means.
                assert status in (400, 404, 429) and error["message"], said
            assert status != 200 or not is_past, said
            sent.add(field)
    assert len(sent) > {"/tokenize": 1, "/detokenize": 0}.get(path, 30)
    assert server.resident_bytes() < at_rest + MAX_MEMORY_BYTES


def test_parts_of_a_message(server):
    for num_parts in (4096, 4097):
        content = [{"type": "text", "text": ""}] * num_parts
        body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
        status, error = post(server, "/v1/chat/completions", json.dumps(body).encode())
        assert status in (200, 400) and ("got 4097" in error.get("message", "")) == (num_parts == 4097), error


def test_the_longest_texts_are_tokenised_in_pieces(server):
    at_rest = server.resident_bytes()
    words = "of words " * 466_033
    assert post(server, "/tokenize", json.dumps({"prompt": words, "return_token_strs": True}).encode())[0] == 200
    status, error = post(server, "/tokenize", json.dumps({"prompt": "1" * (512 << 10)}).encode())
    assert status == 200, error
    status, error = post(server, "/tokenize", json.dumps({"prompt": "1" * ((512 << 10) + 1)}).encode())
    assert status == 400 and "got 524289" in error["message"]
    assert server.resident_bytes() < at_rest + MAX_MEMORY_BYTES
