"""What a model answers through each API: `pagoda serve` over the default model.

PAGODA_ANSWERS_PER_CHOICE (20) says how many answers must be calls for each way to ask for that; a run by hand takes 250.
"""

import concurrent.futures
import json
import os

import jsonschema
import pytest

NUM_ANSWERS = int(os.environ.get("PAGODA_ANSWERS_PER_CHOICE", "20"))
WEATHER = {"type": "object", "required": ["city", "days"], "additionalProperties": False, "properties": {
    "city": {"type": "string", "maxLength": 40}, "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]}}}
ADD = {"type": "object", "required": ["numbers"], "properties": {
    "numbers": {"type": "array", "items": {"type": "number"}, "maxItems": 4},
    "options": {"type": "object", "properties": {"round": {"type": "boolean"}}, "required": ["round"]}}}
SCHEMAS = {"get_weather": WEATHER, "add": ADD}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
QUESTION = [{"role": "user", "content": "What is the weather in Paris, and what is 1 and 2?"}]
NAMED = {"type": "function", "function": {"name": "get_weather"}}


@pytest.fixture(scope="module")
def server(default_model):
    return default_model


@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_calls_that_must_be_made_are_valid(server, choice):
    def answer(seed):
        body = {"messages": QUESTION, "tools": TOOLS, "tool_choice": choice, "temperature": 1.5, "seed": seed,
                "parallel_tool_calls": False}
        status, answered = server.post("/v1/chat/completions", body)
        assert status == 200, answered
        return answered["choices"][0]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for choice_of_answer in pool.map(answer, range(NUM_ANSWERS)):
            message = choice_of_answer["message"]
            assert choice_of_answer["finish_reason"] == "tool_calls" and message["content"] is None
            call, = message["tool_calls"]
            name = call["function"]["name"]
            assert choice == "required" or name == "get_weather"
            jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMAS[name])


def test_each_api_answers_as_chats_do(server):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name three rivers."}]
    sampling = {"temperature": 0.9, "top_p": 0.95, "seed": 7}

    def post(path, **fields):
        status, answered = server.post(path, {**sampling, **fields})
        assert status == 200, answered
        return answered

    chat = post("/v1/chat/completions", messages=messages, max_tokens=24)
    text, num_tokens = chat["choices"][0]["message"]["content"], chat["usage"]["completion_tokens"]
    assert num_tokens > 5

    response = post("/v1/responses", instructions="Be brief.", input="Name three rivers.", max_output_tokens=24)
    assert response["output"][0]["content"][0]["text"] == text and response["usage"]["output_tokens"] == num_tokens

    message = post("/v1/messages", system="Be brief.", messages=messages[1:], max_tokens=24)
    assert message["content"][0]["text"] == text and message["usage"]["output_tokens"] == num_tokens

    ollama = post("/api/chat", messages=messages, stream=False, options={"num_predict": 24})
    assert ollama["message"]["content"] == text and ollama["eval_count"] == num_tokens
    generated = post("/api/generate", prompt="Name three rivers.", system="Be brief.", stream=False, num_predict=24)
    assert generated["response"] == text and generated["eval_count"] == num_tokens
