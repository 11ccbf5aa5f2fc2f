"""A client that openapi-python-client makes from /openapi.json: it has every operation, and its calls are answered."""

import importlib
import json
import pkgutil
import subprocess
import sys
import urllib.request

import pytest
from forecast import CHAT, MODEL, TOO_LONG
from waiting import HANGS_AFTER_S

PACKAGE = "generated_pagoda_client"


@pytest.fixture(scope="module")
def document(served):
    with urllib.request.urlopen(served.url + "/openapi.json") as response:
        return json.load(response)


@pytest.fixture(scope="module")
def api(document, tmp_path_factory):
    """The package's module for each operation, by name. A part of the document that the generator leaves out fails the test."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "config.yml").write_text("post_hooks: []\n")
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", folder / "openapi.json", "--meta", "none",
         "--config", folder / "config.yml", "--output-path", folder / PACKAGE, "--fail-on-warning"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert made.returncode == 0, made.stdout
    sys.path.insert(0, str(folder))
    functions = importlib.import_module(PACKAGE + ".api.default")
    return {found.name: importlib.import_module(f"{functions.__name__}.{found.name}")
            for found in pkgutil.iter_modules(functions.__path__)}


@pytest.fixture(scope="module")
def models(api):
    return importlib.import_module(PACKAGE + ".models")


@pytest.fixture(scope="module")
def client(api, served):
    return importlib.import_module(PACKAGE).Client(base_url=served.url, timeout=HANGS_AFTER_S)


@pytest.fixture
def chat(models):
    return models.ChatCompletionRequest.from_dict({"messages": CHAT, "max_tokens": 4, "temperature": 0, "stream": False})


def test_every_operation_is_there(document, api):
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert {name.replace("_", "") for name in api} == {name.lower() for name in ids}
    assert all(hasattr(module, "sync") and hasattr(module, "asyncio") for module in api.values())


def test_what_the_server_tells(api, models, client):
    assert api["health"].sync(client=client).status == "ok"
    assert MODEL in [model.id for model in api["list_models"].sync(client=client).data]
    assert api["get_model"].sync(model=models.GetModelModel(MODEL), client=client).object_ == "model"
    assert "pagoda" in api["metrics"].sync(client=client)
    assert api["server_info"].sync(client=client).additional_properties


def test_a_chat(run, api, client, chat):
    answer = api["create_chat_completion"].sync(client=client, body=chat)
    assert answer.model == MODEL and answer.usage.completion_tokens == 4
    assert answer.choices[0].finish_reason == "length" and answer.choices[0].message.content
    again = run(api["create_chat_completion"].asyncio(client=client, body=chat))
    assert again.choices[0].message.content == answer.choices[0].message.content


def test_fields_that_hold_objects_or_null(api, models, client, chat):
    tool = {"type": "function", "function": {"name": "f", "description": None, "parameters": {"type": "object"}}}
    chat.tools = [models.FunctionTool.from_dict(tool)]
    chat.response_format = None
    chat.stop = ["no such text"]
    chat.logit_bias = models.LogitBias.from_dict({"5": -100, "6": False})
    answer = api["create_chat_completion"].sync(client=client, body=chat)
    assert answer.usage.completion_tokens == 4
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "boolean"}}}
    chat.response_format = models.JsonSchemaFormat.from_dict(form)
    chat.max_tokens, chat.tools = 20, None
    answer = api["create_chat_completion"].sync(client=client, body=chat)
    assert answer.choices[0].message.content.strip() in ("true", "false")


def test_other_apis(api, models, client, chat):
    text = models.CompletionRequest(prompt="One, two,", max_tokens=4, temperature=0)
    assert api["create_completion"].sync(client=client, body=text).usage.completion_tokens == 4
    asked = models.ResponseRequest.from_dict({"input": CHAT, "max_output_tokens": 4})
    assert api["create_response"].sync(client=client, body=asked).status == "incomplete"
    message = api["create_message"].sync(client=client, body=models.MessagesRequest.from_dict({"messages": CHAT, "max_tokens": 4}))
    assert message.stop_reason == "max_tokens" and message.content
    assert api["ollama_chat"].sync(client=client, body=chat).done is True
    tokens = api["tokenize"].sync(client=client, body=models.TokenizeRequest(prompt="One"))
    assert tokens.count == len(tokens.tokens) > 0
    embedded = api["create_embedding"].sync(client=client, body=models.EmbeddingRequest(input_=["One", "Two"]))
    assert len(embedded.data) == 2 and embedded.data[0].embedding


def test_errors(api, models, client, chat):
    chat.messages = [models.ChatMessage.from_dict({"role": "user", "content": TOO_LONG})]
    refused = api["create_chat_completion"].sync_detailed(client=client, body=chat)
    assert refused.status_code == 400 and refused.parsed.error.code == "context_length_exceeded"
