"""/openapi.json is JSON Schema, states a bound for whatever it takes, and says of requests what the server does with them."""

import json
import urllib.error
import urllib.request

import jsonschema
import pytest

CHAT_PATH = "/v1/chat/completions"
CHAT = {"messages": [{"role": "user", "content": "say a"}]}
REQUESTS = ["CompletionRequest", "ChatCompletionRequest", "ResponseRequest", "MessagesRequest", "OllamaGenerateRequest",
            "OllamaModelRequest", "LlamaCppCompletionRequest", "TokenizeRequest", "DetokenizeRequest", "EmbeddingRequest", "OllamaEmbedRequest", "OllamaEmbeddingRequest"]


@pytest.fixture(scope="module")
def document(server):
    with urllib.request.urlopen(server.url + "/openapi.json") as response:
        return json.load(response)


def test_every_schema_is_one(document):
    schemas = document["components"]["schemas"]
    assert set(REQUESTS) < set(schemas)
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def without_bounds(schema, place):
    """Places in a schema where a string, a list or a number may be of any size."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return
    types = schema.get("type", [])
    types = {types} if isinstance(types, str) else set(types)
    if "string" in types and not {"maxLength", "format", "pattern"} & set(schema):
        yield place
    if "array" in types and "maxItems" not in schema:
        yield place
    if {"integer", "number"} & types and not (
            {"minimum", "exclusiveMinimum"} & set(schema) and "maximum" in schema):
        yield place
    for name, inner in schema.get("properties", {}).items():
        yield from without_bounds(inner, f"{place}.{name}")
    for inner in schema.get("anyOf", []):
        yield from without_bounds(inner, place)
    yield from without_bounds(schema.get("items"), place + "[]")


@pytest.mark.parametrize("name", REQUESTS)
def test_every_field_states_its_bounds(document, name):
    assert not list(without_bounds(document["components"]["schemas"][name], name))


# Fields that other servers have beside OpenAI's, a few of each, and a name for a field that has another one here.
FIELDS_OF_SERVERS = {
    "OpenAI": {"best_of", "metadata", "prompt_cache_key", "service_tier", "store", "user"},
    "vLLM": {"add_special_tokens", "allowed_token_ids", "cache_salt", "ignore_eos", "priority", "prompt_logprobs"},
    "SGLang": {"ebnf", "lora_path", "regex", "return_hidden_states"},
    "llama.cpp": {"dry_multiplier", "grammar", "min_keep", "mirostat", "typical_p", "xtc_probability"},
    "Ollama": {"context", "format", "options", "system"},
}
SAME_FIELDS = {"max_new_tokens": "max_tokens", "n_cmpl": "n", "sampling_seed": "seed"}
NAMES_ALONE = {"logprobs", "messages", "stream_options"}  # their schemas say it all


@pytest.mark.parametrize("name", ["CompletionRequest", "ChatCompletionRequest"])
def test_fields_of_five_servers_are_described(document, name):
    fields = document["components"]["schemas"][name]["properties"]
    assert {field for field, schema in fields.items() if not schema.get("description")} <= NAMES_ALONE
    for server, expected in FIELDS_OF_SERVERS.items():
        assert expected <= {field for field, schema in fields.items() if f"({server})" in schema.get("description", "")}, server
    for field, same in SAME_FIELDS.items():
        assert fields[field]["description"] == f"Means the same as {same}."


@pytest.mark.parametrize("path, schema, body", [
    ("/v1/completions", "CompletionRequest", {"prompt": "say a"}),
    ("/v1/completions", "CompletionRequest", {"prompt": [1, 2], "top_k": -1, "stop": ["x"], "seed": None}),
    ("/v1/completions", "CompletionRequest", {"prompt": [[1], [2]], "stream_options": None}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "n": None, "echo": None, "cache_salt": None}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_tokens": 0}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_tokens": 0, "echo": True}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_tokens": 2**63 - 1}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_tokens": 2**63}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_completion_tokens": -1}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "max_tokens": -3}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "logit_bias": {"266": 1}}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "logit_bias": {"267": 1}}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "logit_bias": {"01": 1}}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "stop_token_ids": [267]}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "stop_token_ids": [1] * 129}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "cache_salt": "x" * 1025}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "top_n_sigma": -1, "top_k": 5.0}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "top_n_sigma": 2}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "n_predict": 5, "max_tokens": 6}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "n_predict": -1}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "stream_options": {}}),
    ("/v1/completions", "CompletionRequest", {}),
    ("/v1/completions", "CompletionRequest", {"prompt": ""}),
    ("/v1/completions", "CompletionRequest", {"prompt": [267]}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "top_p": 0}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "n": 129}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "logprobs": "5"}),
    ("/v1/completions", "CompletionRequest", {"prompt": {"a": 1}}),
    (CHAT_PATH, "ChatCompletionRequest", CHAT),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "temperature": 0, "top_logprobs": 3, "logprobs": True}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "top_logprobs": 3}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "continue_final_message": True}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "tools": [], "tool_choice": "auto", "think": None}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "tools": [{"type": "function"}]}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "think": True}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "chat_template_kwargs": {"enable_thinking": False}}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "chat_template_kwargs": {"messages": []}}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "structured_outputs": {"whitespace_pattern": "[ ]", "disable_any_whitespace": False}}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "structured_outputs": {"whitespace_pattern": "x", "disable_any_whitespace": True}}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "structured_outputs": {"whitespace_pattern": "[ ]", "disable_any_whitespace": True}}),
    (CHAT_PATH, "ChatCompletionRequest",
     {**CHAT, "structured_outputs": {"whitespace_pattern": "[ ]"}, "guided_whitespace_pattern": "[\\t]"}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": []}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": [{"role": "robot", "content": "a"}]}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": [{"role": "user"}]}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": [{"role": "user", "content": "a", "name": 5}]}),
    (CHAT_PATH, "ChatCompletionRequest", {"messages": [*CHAT["messages"], {"role": "assistant"}, *CHAT["messages"]]}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "max_tokens": 0}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "max_tokens": -1}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "max_completion_tokens": 10**7}),
    ("/v1/responses", "ResponseRequest", {"input": "a", "max_output_tokens": 10**7}),
    ("/v1/responses", "ResponseRequest", {"input": "a", "max_output_tokens": -1}),
    ("/v1/messages", "MessagesRequest", {**CHAT, "max_tokens": 10**7}),
    ("/v1/messages", "MessagesRequest", {**CHAT, "max_tokens": 2**63}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "model": ""}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "encoding_format": "base64", "dimensions": 8}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": [[1, 2], "a"], "dimensions": None, "truncate_prompt_tokens": -1}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": [1, 267]}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": ["a", ""]}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": []}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "dimensions": 9}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "encoding_format": "bytes"}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "truncate_prompt_tokens": 0}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "truncate_prompt_tokens": 2049}),
    ("/v1/embeddings", "EmbeddingRequest", {"input": "a", "normalize": False}),
    ("/api/embed", "OllamaEmbedRequest", {"input": ["a"], "options": {"num_ctx": 5}, "keep_alive": -1}),
    ("/api/embed", "OllamaEmbedRequest", {"input": ""}),
    ("/api/embed", "OllamaEmbedRequest", {"input": [""]}),
    ("/api/embed", "OllamaEmbedRequest", {"input": [5]}),
    ("/api/embeddings", "OllamaEmbeddingRequest", {"prompt": "a"}),
    ("/api/embeddings", "OllamaEmbeddingRequest", {"prompt": ["a"]}),
    ("/tokenize", "TokenizeRequest", {"prompt": "a", "return_token_strs": True}),
    ("/tokenize", "TokenizeRequest", {"prompt": "a", **CHAT}),
    ("/tokenize", "TokenizeRequest", {"prompt": "a", "chat_template_kwargs": {"documents": []}}),
    ("/tokenize", "TokenizeRequest", {"prompt": None}),
    ("/tokenize", "TokenizeRequest", {"prompt": 5}),
    ("/detokenize", "DetokenizeRequest", {"tokens": [97]}),
    ("/detokenize", "DetokenizeRequest", {"tokens": [267]}),
    ("/detokenize", "DetokenizeRequest", {"tokens": ["a"]}),
])
def test_schema_and_server_agree(server, document, path, schema, body):
    valid = jsonschema.Draft202012Validator(
        {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}).is_valid(body)
    request = urllib.request.Request(server.url + path, data=json.dumps(body).encode())
    try:
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
    assert status == (200 if valid else 400)
