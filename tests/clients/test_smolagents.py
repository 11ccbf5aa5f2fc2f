"""smolagents' agents and their model for servers like OpenAI's: tools called by JSON, and by code in the text."""

import json

import openai
import pytest
from forecast import MODEL, QUESTION, Forecast
from orders import ANSWER, CITY, HELLO, SAY_HELLO, call
from orders import MODEL as FAKE
from smolagents import ChatMessage, CodeAgent, MessageRole, OpenAIModel, ToolCallingAgent, tool
from smolagents.models import agglomerate_stream_deltas
from smolagents.utils import AgentGenerationError
from waiting import HANGS_AFTER_S

CODE = f'get_weather(city="{CITY}")'
FINAL_CODE = f'final_answer("{ANSWER}")'


def a_tool(result):
    """Its result is the model's next order."""
    cities = []

    @tool
    def get_weather(city: str) -> str:
        """Tells the weather of a city.

        Args:
            city: The city.
        """
        cities.append(city)
        return result

    return get_weather, cities


def model(url, name=FAKE, **fields):
    return OpenAIModel(name, api_base=url + "/v1", api_key="none", retry=False,
                       client_kwargs={"max_retries": 0, "timeout": HANGS_AFTER_S}, **fields)


def asked(text):
    return [ChatMessage(MessageRole.USER, [{"type": "text", "text": text}])]


def test_a_text_whole_and_streamed(fake):
    answer = model(fake.url).generate(asked(SAY_HELLO))
    assert answer.content == HELLO
    deltas = list(model(fake.url).generate_stream(asked(SAY_HELLO)))
    assert len(deltas) > 2
    streamed = agglomerate_stream_deltas(deltas)
    assert streamed.content == HELLO and streamed.token_usage == answer.token_usage


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_that_calls_tools(fake, streams):
    get_weather, cities = a_tool("say " + call("final_answer", answer=ANSWER))
    agent = ToolCallingAgent([get_weather], model(fake.url), max_steps=3, verbosity_level=0, stream_outputs=streams)
    result = agent.run("say " + call("get_weather", city=CITY), return_full_result=True)
    assert (result.output, result.state, cities) == (ANSWER, "success", [CITY])
    first, second = (step for step in agent.memory.steps[1:3])
    assert second.token_usage.input_tokens > first.token_usage.input_tokens > 0


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_that_writes_code(fake, streams):
    """The end of a block of code is a stop sequence."""
    get_weather, cities = a_tool(f"say <code>{FINAL_CODE}</code>")
    agent = CodeAgent([get_weather], model(fake.url), max_steps=3, verbosity_level=0, stream_outputs=streams)
    assert agent.run(f"say Thought: I look. <code>{CODE}</code> and more") == ANSWER
    assert cities == [CITY]


def test_an_agent_whose_code_is_in_json(fake):
    def said(code):
        return "say " + json.dumps({"thought": "I look.", "code": code}, ensure_ascii=False)

    get_weather, cities = a_tool(said(FINAL_CODE))
    agent = CodeAgent([get_weather], model(fake.url), max_steps=3, verbosity_level=0,
                      use_structured_outputs_internally=True)
    assert agent.run(said(CODE)) == ANSWER
    assert cities == [CITY]


def test_a_format(base_url):
    form = {"type": "json_schema", "json_schema": {"name": "forecast", "schema": Forecast.model_json_schema()}}
    small = model(base_url.removesuffix("/v1"), MODEL, max_tokens=200)
    for seed in range(3):
        answer = small.generate(asked(QUESTION), response_format=form, seed=seed)
        Forecast.model_validate_json(answer.content)


def test_a_tool_that_must_be_called(base_url):
    get_weather, _ = a_tool("")
    for seed in range(3):
        answer = model(base_url.removesuffix("/v1"), MODEL, max_tokens=400).generate(
            asked(QUESTION), tools_to_call_from=[get_weather], seed=seed)
        assert {made.function.name for made in answer.tool_calls} == {"get_weather"}


def test_errors(fake):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        model(fake.url, "no-such-model").generate(asked(SAY_HELLO))
    get_weather, _ = a_tool("")
    with pytest.raises(AgentGenerationError, match="no-such-model"):
        ToolCallingAgent([get_weather], model(fake.url, "no-such-model"), verbosity_level=0).run(SAY_HELLO)
