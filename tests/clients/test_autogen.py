"""AutoGen's client for servers like OpenAI's, and agents of it."""

import json

import openai
import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, StructuredMessage, ToolCallExecutionEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import SystemMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from forecast import MODEL, QUESTION, Forecast
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, SYSTEM, WEATHER
from orders import MODEL as FAKE
from waiting import HANGS_AFTER_S


async def get_weather(city: str) -> str:
    return WEATHER


TOOL = FunctionTool(get_weather, description="The weather of a city.")


def client(server, model=FAKE, **fields):
    can = {"vision": False, "function_calling": True, "json_output": True, "structured_output": True,
           "multiple_system_messages": False, "family": "unknown"}
    return OpenAIChatCompletionClient(model=model, base_url=server.url + "/v1", api_key="none", model_info=can,
                                      max_retries=0, timeout=HANGS_AFTER_S, **fields)


def asked(text):
    return [SystemMessage(content=SYSTEM), UserMessage(content=text, source="user")]


async def collected(parts):
    return [part async for part in parts]


def test_a_text_whole_and_streamed(run, fake):
    answer = run(client(fake).create(asked(SAY_HELLO)))
    assert (answer.content, answer.finish_reason) == (HELLO, "stop") and answer.usage.completion_tokens > 1
    *parts, last = run(collected(client(fake).create_stream(asked(SAY_HELLO), include_usage=True)))
    assert len(parts) > 2 and "".join(parts) == last.content == HELLO
    assert last.usage == answer.usage


def test_calls(run, fake):
    answer = run(client(fake).create(asked(SAY_CALLS), tools=[TOOL]))
    assert (answer.finish_reason, answer.thought) == ("function_calls", "Look:")
    assert [json.loads(made.arguments) for made in answer.content] == [{"city": CITY}, {"city": "Bern"}]
    *_, last = run(collected(client(fake).create_stream(asked(SAY_CALLS), tools=[TOOL])))
    assert [(made.name, made.arguments) for made in last.content] == [
        (made.name, made.arguments) for made in answer.content]


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_calls_a_tool_and_is_told_its_result(run, fake, streams):
    agent = AssistantAgent("weather", client(fake), tools=[TOOL], system_message=SYSTEM, reflect_on_tool_use=True,
                           model_client_stream=streams)
    *events, result = run(collected(agent.run_stream(task=SAY_CALL)))
    assert result.messages[-1].content == ANSWER
    executed, = (event for event in events if isinstance(event, ToolCallExecutionEvent))
    assert [told.content for told in executed.content] == [WEATHER]
    chunks = [event.content for event in events if isinstance(event, ModelClientStreamingChunkEvent)]
    assert "".join(chunks) == (ANSWER if streams else "")


def test_agents_in_turn(run, fake):
    agents = [AssistantAgent(name, client(fake), system_message=SYSTEM) for name in ("one", "other")]
    team = RoundRobinGroupChat(agents, termination_condition=MaxMessageTermination(3))
    messages = run(team.run(task=f"say {SAY_HELLO}")).messages
    assert [(message.source, message.content) for message in messages[1:]] == [("one", SAY_HELLO), ("other", HELLO)]


def test_a_form(run, served):
    for seed in range(3):
        answer = run(client(served, MODEL, seed=seed, max_tokens=200).create(asked(QUESTION), json_output=Forecast))
        Forecast.model_validate_json(answer.content)
    agent = AssistantAgent("weather", client(served, MODEL, max_tokens=200), output_content_type=Forecast)
    message = run(agent.run(task=QUESTION)).messages[-1]
    assert isinstance(message, StructuredMessage) and isinstance(message.content, Forecast)


def test_a_tool_that_must_be_called(run, served):
    for choice in ("required", TOOL):
        asking = client(served, MODEL, max_tokens=300, parallel_tool_calls=False)
        made, = run(asking.create(asked(QUESTION), tools=[TOOL], tool_choice=choice)).content
        assert isinstance(made, FunctionCall) and made.name == "get_weather"
        assert isinstance(json.loads(made.arguments)["city"], str)


def test_errors(run, fake):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        run(client(fake, "no-such-model").create(asked(SAY_HELLO)))
