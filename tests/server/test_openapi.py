"""/openapi.json is JSON Schema, states a bound for whatever it takes, says of requests what the server does with them, and has
the form that generators of clients take."""

import collections
import json
import urllib.error
import urllib.request

import jsonschema
import pytest

CHAT_PATH = "/v1/chat/completions"
CHAT = {"messages": [{"role": "user", "content": "say a"}]}
REQUESTS = ["CompletionRequest", "ChatCompletionRequest", "ResponseRequest", "MessagesRequest", "OllamaChatRequest", "OllamaGenerateRequest",
            "OllamaModelRequest", "LlamaCppCompletionRequest", "LlamaCppEmbeddingRequest", "TokenizeRequest", "DetokenizeRequest", "EmbeddingRequest", "OllamaEmbedRequest", "OllamaEmbeddingRequest"]


@pytest.fixture(scope="module")
def document(server):
    with urllib.request.urlopen(server.url + "/openapi.json") as response:
        return json.load(response)


def test_every_schema_is_one(document):
    schemas = document["components"]["schemas"]
    assert set(REQUESTS) < set(schemas)
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def referred(document, reference):
    found = document
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def without_bounds(document, schema, place):
    """Places in a schema where a string, a list or a number may be of any size."""
    if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
        return
    if "$ref" in schema:
        schema = referred(document, schema["$ref"])
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
        yield from without_bounds(document, inner, f"{place}.{name}")
    for inner in schema.get("anyOf", []):
        yield from without_bounds(document, inner, place)
    yield from without_bounds(document, schema.get("items"), place + "[]")


@pytest.mark.parametrize("name", REQUESTS)
def test_every_field_states_its_bounds(document, name):
    assert not list(without_bounds(document, document["components"]["schemas"][name], name))


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def with_inner(schema):
    """A schema, and those within it."""
    yield schema
    for keyword, value in schema.items():
        if keyword == "properties":
            inner = value.values()
        elif keyword in ("allOf", "anyOf", "oneOf"):
            inner = value
        elif keyword in ("additionalProperties", "else", "if", "items", "not", "propertyNames", "then"):
            inner = [value] if isinstance(value, dict) else []
        else:
            inner = []
        for one in inner:
            yield from with_inner(one)


def contents(operation):
    """The bodies that an operation takes and answers, by media type."""
    return [operation.get("requestBody", {}).get("content", {}), operation["responses"]["200"]["content"]]


@pytest.fixture(scope="module")
def schemas(document):
    """Every schema that a generator of clients reads, with those within it."""
    named = [*document["components"]["schemas"].values()]
    for _, _, operation in operations(document):
        named += [parameter["schema"] for parameter in operation.get("parameters", [])]
        named += [body["schema"] for content in contents(operation) for body in content.values()]
    return [schema for one in named for schema in with_inner(one)]


def test_enumerations_have_one_type_each(schemas):
    for schema in schemas:
        assert {type(value) for value in schema.get("enum", [])} in [set(), {str}, {int}, {bool}], schema
        assert schema.get("type") or "enum" not in schema, schema


def test_lists_say_what_they_hold_and_are_not_null_by_themselves(schemas):
    for schema in schemas:
        assert schema.get("type") != "array" or "items" in schema, schema
        assert isinstance(schema.get("type", ""), str) or not {"array", "object"} & set(schema["type"]), schema


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_reference_leads_to_a_part_and_every_part_is_referred_to(document):
    used = set(references(document))
    for reference in used:
        assert referred(document, reference), reference
    parts = [(kind, name) for kind in ("schemas", "responses", "x-contradictions") for name in document["components"][kind]]
    assert used == {f"#/components/{kind}/{name}" for kind, name in parts}


def test_no_large_schema_is_written_twice(document):
    times = collections.Counter()
    for schema in document["components"]["schemas"].values():
        for one in with_inner(schema):
            times[json.dumps({key: value for key, value in one.items() if key not in ("default", "description")})] += 1
    assert not [text for text, number in times.items() if number > 1 and len(text) > 300]


def test_the_document_is_no_larger_than_600_kb(server):
    with urllib.request.urlopen(server.url + "/openapi.json") as response:
        assert len(response.read()) < 600_000


def test_every_operation_has_an_id_of_its_own(document):
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) >= 42 and len(set(name.lower() for name in ids)) == len(ids)
    assert all(name.isidentifier() for name in ids)


FILL_IN = {"input_prefix": "a", "input_suffix": "b"}
# Bodies that ask for a few tokens, by path, where answers may be streams.
STREAMED = {
    "/v1/completions": {"prompt": "say a"}, CHAT_PATH: CHAT, "/chat/completions": CHAT, "/v1/responses": {"input": "say a"},
    "/v1/messages": {**CHAT, "max_tokens": 4}, "/api/chat": CHAT, "/api/generate": {"prompt": "say a"},
    "/completion": {"prompt": "say a"}, "/completions": {"prompt": "say a"}, "/infill": FILL_IN,
}


def test_answers_have_the_media_types_that_the_document_states(server, document):
    for path, method, operation in operations(document):
        taken, answered = map(set, contents(operation))
        assert taken in [set(), {"application/json"}], path
        if method == "get" and "{" not in path:
            with urllib.request.urlopen(server.url + path) as response:
                assert answered == {response.headers.get_content_type()}, path
        elif len(answered) > 1:
            got = set()
            for stream in (False, True):
                body = json.dumps({**STREAMED[path], "stream": stream}).encode()
                with urllib.request.urlopen(urllib.request.Request(server.url + path, data=body)) as response:
                    got.add(response.headers.get_content_type())
            assert answered == got, path
        else:
            assert path not in STREAMED and answered == {"application/json"}, path


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


def test_parameters_of_queries_are_described(document):
    listing = document["paths"]["/v1/responses/{response_id}/input_items"]["get"]
    places = {parameter["name"]: parameter["in"] for parameter in listing["parameters"]}
    assert places == {"response_id": "path", "order": "query", "after": "query", "limit": "query"}


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
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "truncate_prompt_tokens": 1}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "truncate_prompt_tokens": 0}),
    (CHAT_PATH, "ChatCompletionRequest", {**CHAT, "truncate_prompt_tokens": 2049}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "truncate_prompt_tokens": -1}),
    ("/v1/completions", "CompletionRequest", {"prompt": "a", "truncate_prompt_tokens": 3, "suffix": "b"}),
    ("/embedding", "LlamaCppEmbeddingRequest", {"content": ["a", [1, 2]], "encoding_format": "base64"}),
    ("/embeddings", "LlamaCppEmbeddingRequest", {"input": "a", "content": None}),
    ("/embedding", "LlamaCppEmbeddingRequest", {"input": "a", "content": "b"}),
    ("/embedding", "LlamaCppEmbeddingRequest", {"content": None}),
    ("/embedding", "LlamaCppEmbeddingRequest", {"input": "a", "embd_normalize": 1}),
    ("/api/generate", "OllamaGenerateRequest", {"prompt": "say a", "context": [1, 266], "top_logprobs": 20, "options": {"num_predict": 0}}),
    ("/api/generate", "OllamaGenerateRequest", {"prompt": "say a", "context": [1 << 20]}),
    ("/api/generate", "OllamaGenerateRequest", {"prompt": "say a", "context": ["1"]}),
    ("/api/generate", "OllamaGenerateRequest", {"prompt": "say a", "logprobs": True, "top_logprobs": 21}),
    ("/api/chat", "OllamaChatRequest", {**CHAT, "top_logprobs": 3, "num_predict": -2}),
    ("/api/chat", "OllamaChatRequest", {**CHAT, "num_predict": 0, "max_tokens": 5}),
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
