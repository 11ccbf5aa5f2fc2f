"""Tools, thoughts and the other APIs through clients that others wrote: OpenAI's, Anthropic's and Ollama's own packages against
pagoda_fake_server, whose model says what the prompt asks it to say."""

import json

import anthropic
import ollama
import openai
import pytest
from fake_server import FakeServer
from pydantic import BaseModel

MODEL = "fake-model"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": PARAMETERS}}]
FLAT_TOOLS = [{"type": "function", **TOOLS[0]["function"], "strict": False}]
ARGUMENTS = {"city": "Zürich"}
CALL = f'<tool_call>{{"name": "get_weather", "arguments": {json.dumps(ARGUMENTS, ensure_ascii=False)}}}</tool_call>'
SAY_CALL = [{"role": "user", "content": f"say Look: {CALL}{CALL}"}]
PATCH = 'a\n"b"'
SAY_PATCH = [{"role": "user", "content": f'say <tool_call>{{"name": "patch", "arguments": {json.dumps({"input": PATCH})}}}</tool_call>'}]


@pytest.fixture(scope="module")
def url():
    fake = FakeServer()
    yield fake.url
    fake.close()


@pytest.fixture
def client(reached):
    url, http_client = reached
    return openai.OpenAI(base_url=url + "/v1", api_key="none", http_client=http_client, max_retries=0)


def test_calls_of_a_chat(client):
    choice = client.chat.completions.create(model=MODEL, messages=SAY_CALL, tools=TOOLS).choices[0]
    assert choice.finish_reason == "tool_calls" and choice.message.content == "Look:"
    calls = choice.message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather"] * 2
    assert all(json.loads(call.function.arguments) == ARGUMENTS for call in calls)
    assert len({call.id for call in calls}) == 2


def test_calls_of_a_streamed_chat(client):
    with client.chat.completions.stream(model=MODEL, messages=SAY_CALL, tools=TOOLS) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        message = stream.get_final_completion().choices[0].message
    assert [json.loads(event.arguments) for event in done] == [ARGUMENTS] * 2
    assert message.content == "Look:" and len(message.tool_calls) == 2


def test_the_conversation_goes_on_with_results(client):
    message = client.chat.completions.create(model=MODEL, messages=SAY_CALL, tools=TOOLS).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
    answer = client.chat.completions.create(
        model=MODEL, messages=[*SAY_CALL, message, *results, {"role": "user", "content": "say thanks"}], tools=TOOLS)
    assert answer.choices[0].message.content == "thanks" and answer.choices[0].finish_reason == "stop"


def test_choices_of_tools(client):
    refused = {"type": "function", "function": {"name": "no_such"}}
    with pytest.raises(openai.BadRequestError, match="no function 'no_such'"):
        client.chat.completions.create(model=MODEL, messages=SAY_CALL, tools=TOOLS, tool_choice=refused)
    none = client.chat.completions.create(model=MODEL, messages=SAY_CALL, tools=TOOLS, tool_choice="none")
    assert none.choices[0].message.tool_calls is None and CALL in none.choices[0].message.content
    one = client.chat.completions.create(model=MODEL, messages=SAY_CALL, tools=TOOLS, parallel_tool_calls=False)
    assert len(one.choices[0].message.tool_calls) == 1


def test_a_custom_tool_of_a_chat(client):
    tools = [{"type": "custom", "custom": {"name": "patch", "format": {"type": "text"}}}, *TOOLS]
    choice = client.chat.completions.create(model=MODEL, messages=SAY_PATCH, tools=tools).choices[0]
    call = choice.message.tool_calls[0]
    assert choice.finish_reason == "tool_calls" and call.type == "custom"
    assert call.custom.name == "patch" and call.custom.input == PATCH
    turn = [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "done"}, {"role": "user", "content": "say thanks"}]
    answer = client.chat.completions.create(model=MODEL, messages=[*SAY_PATCH, *turn], tools=tools)
    assert answer.choices[0].message.content == "thanks"


def test_a_response(client):
    response = client.responses.create(model=MODEL, input="say hello", instructions="Be kind.")
    assert response.output_text == "hello" and response.status == "completed"
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert client.responses.retrieve(response.id).output_text == "hello"
    more = client.responses.create(model=MODEL, input="say more", previous_response_id=response.id)
    assert more.output_text == "more" and more.usage.input_tokens > response.usage.input_tokens
    client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(response.id)


def test_the_input_of_a_response(client):
    response = client.responses.create(model=MODEL, input="say hello")
    items = list(client.responses.input_items.list(response.id))
    assert [item.content[0].text for item in items] == ["say hello"]
    references = [{"type": "item_reference", "id": item.id} for item in [*items, *response.output]]
    turn = {"model": MODEL, "input": [*references, {"role": "user", "content": "say more"}]}
    more = client.responses.create(**turn)
    assert more.output_text == "more"
    assert client.responses.input_tokens.count(**turn).input_tokens == more.usage.input_tokens


def test_calls_of_a_response(client):
    response = client.responses.create(model=MODEL, input=SAY_CALL, tools=FLAT_TOOLS)
    assert [item.type for item in response.output] == ["message", "function_call", "function_call"]
    call = response.output[1]
    assert call.name == "get_weather" and json.loads(call.arguments) == ARGUMENTS
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
    items = [*SAY_CALL, *response.output, output, {"role": "user", "content": "say thanks"}]
    assert client.responses.create(model=MODEL, input=items, tools=FLAT_TOOLS).output_text == "thanks"


def test_a_streamed_response(client):
    with client.responses.stream(model=MODEL, input=SAY_CALL, tools=FLAT_TOOLS) as stream:
        events = list(stream)
        response = stream.get_final_response()
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert response.output_text == "Look:" and len(response.output) == 3
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == "Look:"


def test_a_custom_tool_of_a_response(client):
    grammar = {"type": "grammar", "syntax": "regex", "definition": "(?s).*"}
    tools = [{"type": "custom", "name": "patch", "format": grammar}, *FLAT_TOOLS]
    with client.responses.stream(model=MODEL, input=SAY_PATCH, tools=tools) as stream:
        deltas = [event.delta for event in stream if event.type == "response.custom_tool_call_input.delta"]
        response = stream.get_final_response()
    call = response.output[0]
    assert call.type == "custom_tool_call" and call.name == "patch" and call.input == "".join(deltas) == PATCH
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "done"}
    turn = [output, {"role": "user", "content": "say thanks"}]
    for more in ({"input": [*SAY_PATCH, call, *turn]}, {"input": turn, "previous_response_id": response.id}):
        assert client.responses.create(model=MODEL, tools=tools, **more).output_text == "thanks"


class Place(BaseModel):
    city: str


def test_a_response_of_a_schema(client):
    # The fake model keeps to no grammar, so it is told what to say.
    response = client.responses.parse(model=MODEL, input='say {"city": "Bern"}', text_format=Place)
    assert response.output_parsed == Place(city="Bern")


def test_anthropics_messages(url):
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    tools = [{"name": "get_weather", "description": "Weather.", "input_schema": PARAMETERS}]
    message = client.messages.create(model=MODEL, max_tokens=300, messages=SAY_CALL, tools=tools, system="Be kind.")
    assert message.stop_reason == "tool_use"
    assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
    assert message.content[1].input == ARGUMENTS
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"} for block in message.content[1:]]
    turn = {"role": "user", "content": [*results, {"type": "text", "text": "say thanks"}]}
    with client.messages.stream(model=MODEL, max_tokens=300, tools=tools, messages=[
            *SAY_CALL, {"role": "assistant", "content": message.content}, turn]) as stream:
        assert "".join(stream.text_stream) == "thanks"
        assert stream.get_final_message().stop_reason == "end_turn"
    assert client.messages.count_tokens(model=MODEL, messages=SAY_CALL).input_tokens > 0
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=MODEL, max_tokens=1, messages=[{"role": "user", "content": [{"type": "image"}]}])


def test_anthropics_runner_of_tools(url):
    """It begins with a thread, and goes on without one where the server refuses that."""
    cities = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return "say It is sunny."

    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    message = client.beta.messages.tool_runner(model=MODEL, max_tokens=300, messages=SAY_CALL, tools=[get_weather]).until_done()
    assert [block.text for block in message.content] == ["It is sunny."]
    assert cities == [ARGUMENTS["city"]] * 2


def test_anthropics_models_and_errors(url):
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    models = list(client.models.list())
    assert models[0].id == MODEL and models[0].type == "model"
    assert client.models.retrieve(MODEL) == models[0]
    with pytest.raises(anthropic.NotFoundError) as refused:
        client.models.retrieve("none")
    assert refused.value.body["type"] == "error"
    assert refused.value.request_id == refused.value.body["request_id"]


def test_anthropics_key():
    server = FakeServer(api_key="K")
    try:
        ask = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "say a"}]}
        anthropic.Anthropic(base_url=server.url, api_key="K", max_retries=0).messages.create(**ask)
        with pytest.raises(anthropic.AuthenticationError):
            anthropic.Anthropic(base_url=server.url, api_key="L", max_retries=0).messages.create(**ask)
    finally:
        server.close()


def test_ollama(url):
    client = ollama.Client(host=url)
    assert client.list().models[0].model == MODEL
    assert client.ps().models[0].model == MODEL
    assert "completion" in client.show(MODEL).capabilities
    chat = client.chat(model=MODEL, messages=SAY_CALL, tools=TOOLS)
    assert chat.message.content == "Look:" and chat.message.tool_calls[0].function.arguments == ARGUMENTS
    streamed = list(client.chat(model=MODEL, messages=[{"role": "user", "content": "say hello"}], stream=True))
    assert "".join(part.message.content for part in streamed) == "hello" and streamed[-1].done_reason == "stop"
    assert client.generate(model=MODEL, prompt="say hello", options={"temperature": 0}).response == "hello"
    said = client.generate(model=MODEL, prompt="say hello", logprobs=True, top_logprobs=2)
    assert said.logprobs[0].token == "he" and len(said.logprobs[0].top_logprobs) == 2
    more = client.generate(model=MODEL, prompt="say more", context=said.context)
    assert more.response == "more" and more.context[:len(said.context)] == said.context
    with pytest.raises(ollama.ResponseError):
        client.chat(model="other", messages=SAY_CALL)
