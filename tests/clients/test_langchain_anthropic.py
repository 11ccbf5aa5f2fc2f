"""LangChain's model for Anthropic's API against Pagoda's Messages."""

import anthropic
import pytest
from forecast import MODEL, QUESTION, Forecast
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from orders import (ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, SAY_THOUGHT, SYSTEM, THOUGHT, WEATHER)
from orders import MODEL as FAKE
from waiting import HANGS_AFTER_S


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return WEATHER


def chat(server, model=FAKE, **fields):
    return ChatAnthropic(base_url=server.url, api_key="none", model=model, max_tokens=1500, max_retries=0,
                         timeout=HANGS_AFTER_S, **fields)


def asked(text):
    return [SystemMessage(SYSTEM), HumanMessage(text)]


def text_of(message):
    return message.content if isinstance(message.content, str) else "".join(
        block["text"] for block in message.content if block["type"] == "text")


def whole_of(chunks):
    chunks = list(chunks)
    assert len(chunks) > 2
    return sum(chunks[1:], chunks[0])


def test_invoke(fake):
    answer = chat(fake).invoke(asked(SAY_HELLO))
    assert answer.content == HELLO and answer.response_metadata["stop_reason"] == "end_turn"
    usage = answer.usage_metadata
    assert usage["output_tokens"] > 1 and usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_stream_is_the_same_answer(run, fake):
    model = chat(fake)
    answer = model.invoke(asked(SAY_HELLO))
    streamed = whole_of(model.stream(asked(SAY_HELLO)))
    assert text_of(streamed) == HELLO and streamed.response_metadata["stop_reason"] == "end_turn"
    assert streamed.usage_metadata["input_tokens"] == answer.usage_metadata["input_tokens"]
    assert streamed.usage_metadata["output_tokens"] == answer.usage_metadata["output_tokens"]
    assert run(model.ainvoke(asked(SAY_HELLO))).content == HELLO


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_and_its_result_is_told(fake, streams):
    model = chat(fake).bind_tools([get_weather])

    def ask(messages):
        return whole_of(model.stream(messages)) if streams else model.invoke(messages)

    called = ask(asked(SAY_CALLS))
    assert text_of(called) == "Look:" and called.response_metadata["stop_reason"] == "tool_use"
    assert [call["args"] for call in called.tool_calls] == [{"city": CITY}, {"city": "Bern"}]
    results = [get_weather.invoke(call) for call in called.tool_calls]
    answer = ask([*asked(SAY_CALLS), called, *results])
    assert text_of(answer) == ANSWER
    assert answer.usage_metadata["input_tokens"] > called.usage_metadata["input_tokens"]


def test_a_call_without_a_text(fake):
    model = chat(fake).bind_tools([get_weather], tool_choice="get_weather", parallel_tool_calls=False)
    called = model.invoke(asked(SAY_CALL))
    assert [call["args"] for call in called.tool_calls] == [{"city": CITY}]
    assert model.invoke([*asked(SAY_CALL), called, get_weather.invoke(called.tool_calls[0])]).content == ANSWER


def test_thoughts(thinking):
    model = chat(thinking, thinking={"type": "enabled", "budget_tokens": 1024})
    for answer in (model.invoke(asked(SAY_THOUGHT)), whole_of(model.stream(asked(SAY_THOUGHT)))):
        thought = next(block for block in answer.content_blocks if block["type"] == "reasoning")
        assert thought["reasoning"] == THOUGHT and text_of(answer).strip() == "Then I answer."
    again = model.invoke([*asked(SAY_THOUGHT), answer, HumanMessage(SAY_HELLO)])
    assert text_of(again) == HELLO


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(served, method):
    model = chat(served, MODEL).with_structured_output(Forecast, method=method)
    for _ in range(3):
        assert isinstance(model.invoke(asked(QUESTION)), Forecast)


def test_tokens_are_counted(fake):
    messages = asked(SAY_HELLO)
    assert chat(fake).get_num_tokens_from_messages(messages) == chat(fake).invoke(messages).usage_metadata["input_tokens"]


def test_errors(fake):
    with pytest.raises(anthropic.NotFoundError, match="no-such-model"):
        chat(fake, "no-such-model").invoke(asked(SAY_HELLO))
    with pytest.raises(anthropic.BadRequestError, match="top_k"):
        chat(fake, top_k=-5).invoke(asked(SAY_HELLO))
