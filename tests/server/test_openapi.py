"""/openapi.json is JSON Schema, and says of requests what the server does with them."""

import json
import urllib.error
import urllib.request

import jsonschema
import pytest


@pytest.fixture(scope="module")
def document(server):
    with urllib.request.urlopen(server.url + "/openapi.json") as response:
        return json.load(response)


def test_every_schema_is_one(document):
    schemas = document["components"]["schemas"]
    assert len(schemas) == 5
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


CHAT = {"messages": [{"role": "user", "content": "say a"}]}


@pytest.mark.parametrize("path, schema, body", [
    ("/v1/completions", "CompletionRequest", {"prompt": "say a"}),
    ("/v1/completions", "CompletionRequest", {"prompt": [1, 2], "top_k": -1, "stop": ["x"], "seed": None}),
    ("/v1/completions", "CompletionRequest", {"prompt": [[1], [2]], "stream_options": None}),
    ("/v1/completions", "CompletionRequest", {}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "top_p": 0}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "n": 129}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "logprobs": "5"}),
    ("/v1/completions", "CompletionRequest", {"prompt": {"a": 1}}),
    ("/v1/chat/completions", "ChatCompletionRequest", CHAT),
    ("/v1/chat/completions", "ChatCompletionRequest", {**CHAT, "temperature": 0, "top_logprobs": 3, "logprobs": True}),
    ("/v1/chat/completions", "ChatCompletionRequest", {"messages": []}),
    ("/v1/chat/completions", "ChatCompletionRequest", {"messages": [{"role": "robot", "content": "a"}]}),
    ("/v1/chat/completions", "ChatCompletionRequest", {**CHAT, "max_tokens": 0}),
    ("/tokenize", "TokenizeRequest", {"prompt": "a", "return_token_strs": True}),
    ("/tokenize", "TokenizeRequest", {"prompt": 5}),
    ("/detokenize", "DetokenizeRequest", {"tokens": [97]}),
    ("/detokenize", "DetokenizeRequest", {"tokens": ["a"]}),
])
def test_schema_and_server_agree(server, document, path, schema, body):
    valid = jsonschema.Draft202012Validator(document["components"]["schemas"][schema]).is_valid(body)
    request = urllib.request.Request(server.url + path, data=json.dumps(body).encode())
    try:
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
    assert status == (200 if valid else 400)
