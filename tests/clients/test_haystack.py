"""Haystack's generators for OpenAI's APIs, alone, in a pipeline and in its agent."""

from typing import Annotated

import openai
import pytest
from forecast import MODEL, QUESTION, Forecast
from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage, Document
from haystack.tools import tool
from haystack.utils import Secret
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, SYSTEM, WEATHER
from orders import MODEL as FAKE
from waiting import HANGS_AFTER_S

APIS = [OpenAIChatGenerator, OpenAIResponsesChatGenerator]


@tool
def get_weather(city: Annotated[str, "The city"]) -> str:
    """The weather of a city."""
    return WEATHER


def where(server):
    return {"api_key": Secret.from_token("none"), "api_base_url": server.url + "/v1", "max_retries": 0,
            "timeout": HANGS_AFTER_S}


def asked(text):
    return [ChatMessage.from_system(SYSTEM), ChatMessage.from_user(text)]


@pytest.fixture(params=APIS, ids=["chats", "responses"])
def api(request):
    return request.param


def test_a_text(run, fake, api):
    generator = api(model=FAKE, **where(fake))
    reply, = generator.run(asked(SAY_HELLO))["replies"]
    assert reply.text == HELLO
    assert run(generator.run_async(asked(SAY_HELLO)))["replies"][0].text == HELLO


def test_a_stream_is_the_same_answer(fake, api):
    chunks = []
    reply, = api(model=FAKE, streaming_callback=chunks.append, **where(fake)).run(asked(SAY_HELLO))["replies"]
    assert reply.text == HELLO and len(chunks) > 2
    assert "".join(chunk.content for chunk in chunks) == HELLO


def test_a_pipeline(fake):
    pipeline = Pipeline()
    pipeline.add_component("prompt", ChatPromptBuilder([ChatMessage.from_user("say hello {{name}}")]))
    pipeline.add_component("model", OpenAIChatGenerator(model=FAKE, **where(fake)))
    pipeline.connect("prompt.prompt", "model.messages")
    assert pipeline.run({"prompt": {"name": "猫"}})["model"]["replies"][0].text == HELLO


@pytest.mark.parametrize("streams", [False, True])
def test_an_agent_calls_a_tool_and_is_told_its_result(fake, api, streams):
    chunks = []
    agent = Agent(chat_generator=api(model=FAKE, **where(fake)), tools=[get_weather], system_prompt=SYSTEM,
                  streaming_callback=chunks.append if streams else None)
    result = agent.run([ChatMessage.from_user(SAY_CALL)])
    assert result["last_message"].text == ANSWER
    made, = next(message.tool_calls for message in result["messages"] if message.tool_calls)
    assert (made.tool_name, made.arguments) == ("get_weather", {"city": CITY})
    assert bool(chunks) == streams


def test_several_calls(fake):
    reply, = OpenAIChatGenerator(model=FAKE, tools=[get_weather], **where(fake)).run(asked(SAY_CALLS))["replies"]
    assert reply.text == "Look:" and reply.meta["finish_reason"] == "tool_calls"
    assert [made.arguments for made in reply.tool_calls] == [{"city": CITY}, {"city": "Bern"}]


def test_a_format(served, api):
    name, tokens = {OpenAIChatGenerator: ("response_format", "max_completion_tokens"),
                    OpenAIResponsesChatGenerator: ("text_format", "max_output_tokens")}[api]
    generator = api(model=MODEL, generation_kwargs={name: Forecast, tokens: 200}, **where(served))
    for _ in range(3):
        reply, = generator.run(asked(QUESTION))["replies"]
        Forecast.model_validate_json(reply.text)


def test_embeddings(fake):
    first = OpenAITextEmbedder(model=FAKE, **where(fake)).run("one")["embedding"]
    documents = [Document(content="one"), Document(content="another")]
    embedded = OpenAIDocumentEmbedder(model=FAKE, progress_bar=False, **where(fake)).run(documents)["documents"]
    assert embedded[0].embedding == pytest.approx(first) and embedded[1].embedding != pytest.approx(first)


def test_errors(fake, api):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        api(model="no-such-model", **where(fake)).run(asked(SAY_HELLO))
