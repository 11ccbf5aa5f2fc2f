"""Semantic Kernel's service for servers like OpenAI's, with its own loop of calls, and its agent."""

import json
from typing import Annotated

import pytest
from forecast import MODEL, QUESTION, Forecast
from openai import AsyncOpenAI
from orders import ANSWER, CITY, HELLO, SAY_HELLO, SYSTEM, WEATHER, call
from orders import MODEL as FAKE
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import (OpenAIChatCompletion, OpenAIChatPromptExecutionSettings,
                                                   OpenAITextEmbedding)
from semantic_kernel.contents import ChatHistory, FunctionCallContent, FunctionResultContent
from semantic_kernel.exceptions.service_exceptions import ServiceResponseException
from semantic_kernel.functions import KernelPlugin, kernel_function
from waiting import HANGS_AFTER_S


class Weather:
    @kernel_function(name="get_weather", description="The weather of a city.")
    def get_weather(self, city: Annotated[str, "The city"]) -> str:
        return WEATHER


PLUGIN = KernelPlugin.from_object("sky", Weather())
# Semantic Kernel puts the plugin's name before the function's.
NAME = "sky-get_weather"
SAY_CALL = f"say {call(NAME, city=CITY)}"
SAY_CALLS = f"say Look: {call(NAME, city=CITY)}{call(NAME, city='Bern')}"


def opened(server):
    return AsyncOpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=HANGS_AFTER_S)


def service(server, model=FAKE):
    return OpenAIChatCompletion(ai_model_id=model, async_client=opened(server))


def kernel():
    return Kernel(plugins=[PLUGIN])


def asked(text):
    history = ChatHistory(system_message=SYSTEM)
    history.add_user_message(text)
    return history


def settings(**fields):
    return OpenAIChatPromptExecutionSettings(**fields)


async def collected(parts):
    return [part async for part in parts]


def parts_of(messages, kind):
    return [item for message in messages for item in message.items if isinstance(item, kind)]


def test_a_text_whole_and_streamed(run, fake):
    answer = run(service(fake).get_chat_message_content(asked(SAY_HELLO), settings()))
    assert (str(answer), answer.finish_reason) == (HELLO, "stop")
    chunks = run(collected(service(fake).get_streaming_chat_message_content(asked(SAY_HELLO), settings())))
    assert len(chunks) > 2 and "".join(map(str, chunks)) == HELLO


def test_calls(run, fake):
    """Those that the program is to make itself."""
    choosing = settings(function_choice_behavior=FunctionChoiceBehavior.Auto(auto_invoke=False))
    answer = run(service(fake).get_chat_message_content(asked(SAY_CALLS), choosing, kernel=kernel()))
    made = parts_of([answer], FunctionCallContent)
    assert (str(answer), answer.finish_reason) == ("Look:", "tool_calls")
    assert [(one.name, json.loads(one.arguments)["city"]) for one in made] == [(NAME, CITY), (NAME, "Bern")]
    chunks = run(collected(service(fake).get_streaming_chat_message_content(asked(SAY_CALLS), choosing, kernel=kernel())))
    streamed = parts_of([sum(chunks[1:], chunks[0])], FunctionCallContent)
    assert [(one.name, one.arguments) for one in streamed] == [(one.name, one.arguments) for one in made]


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_calls_a_tool_and_is_told_its_result(run, fake, streams):
    agent = ChatCompletionAgent(service=service(fake), name="weather", instructions=SYSTEM, plugins=[PLUGIN])
    thread = ChatHistoryAgentThread()
    if streams:
        chunks = run(collected(agent.invoke_stream(messages=SAY_CALL, thread=thread)))
        assert "".join(str(chunk.message) for chunk in chunks) == ANSWER
    else:
        answer = run(agent.get_response(messages=SAY_CALL, thread=thread))
        assert str(answer.message) == ANSWER
    messages = run(collected(thread.get_messages()))
    result, = parts_of(messages, FunctionResultContent)
    made, = parts_of(messages, FunctionCallContent)
    assert (str(result.result), result.id) == (WEATHER, made.id)
    # The conversation goes on behind the call and its result.
    assert str(run(agent.get_response(messages=SAY_HELLO, thread=thread)).message) == HELLO


def test_a_form(run, served):
    for seed in range(3):
        asking = settings(response_format=Forecast, seed=seed, max_tokens=200)
        answer = run(service(served, MODEL).get_chat_message_content(asked(QUESTION), asking))
        Forecast.model_validate_json(str(answer))


def test_embeddings(run, fake):
    embedding = OpenAITextEmbedding(ai_model_id=FAKE, async_client=opened(fake))
    one, other, again = run(embedding.generate_embeddings(["one", "another", "one"]))
    assert one == pytest.approx(again) and one != pytest.approx(other)


def test_errors(run, fake):
    with pytest.raises(ServiceResponseException) as error:
        run(service(fake, "no-such-model").get_chat_message_content(asked(SAY_HELLO), settings()))
    assert "no-such-model" in str(error.value)
