"""LlamaIndex's model for servers like OpenAI's against `pagoda serve`."""

import openai
import pytest
from forecast import CHAT, MODEL, QUESTION, TOO_LONG, Forecast, a_letter_of, held_to_calls
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from waiting import HANGS_AFTER_S

MESSAGES = [ChatMessage(role=message["role"], content=message["content"]) for message in CHAT]


def get_weather(city: str, days: int, sunny: bool) -> str:
    """The weather of a city."""
    return f"{city}: {sunny}"


TOOL = FunctionTool.from_defaults(get_weather, fn_schema=Forecast)


@pytest.fixture(scope="module")
def make(base_url):
    """A model for chats, or for texts where that is said."""
    def model(name=MODEL, is_chat_model=True, max_tokens=8, **fields):
        return OpenAILike(model=name, api_base=base_url, api_key="none", is_chat_model=is_chat_model, max_retries=0,
                          is_function_calling_model=True, max_tokens=max_tokens, context_window=2048,
                          timeout=HANGS_AFTER_S, **{"temperature": 0, **fields})

    return model


def drawn(make, seed, **fields):
    """A model that may take as many tokens as a call or a form needs."""
    return make(max_tokens=300, temperature=1, additional_kwargs={"seed": seed}, **fields)


def test_chat(make):
    answer = make().chat(MESSAGES)
    assert answer.message.role == "assistant" and answer.message.content
    assert answer.raw.choices[0].finish_reason == "length"
    told = answer.additional_kwargs
    assert told["completion_tokens"] == 8 and told["total_tokens"] == told["prompt_tokens"] + 8


def test_a_streamed_chat_is_the_same_answer(make):
    parts = list(make().stream_chat(MESSAGES))
    assert len(parts) > 2
    assert "".join(part.delta or "" for part in parts) == parts[-1].message.content
    assert parts[-1].message.content == make().chat(MESSAGES).message.content


def test_async(run, make):
    async def ask():
        whole = await make().achat(MESSAGES)
        parts = [part.delta or "" async for part in await make().astream_chat(MESSAGES)]
        return [whole.message.content, "".join(parts)]

    assert run(ask()) == [make().chat(MESSAGES).message.content] * 2


def test_text_completions(run, make):
    model = make(is_chat_model=False)
    whole = model.complete(QUESTION)
    assert whole.text and whole.raw.choices[0].finish_reason == "length" and whole.raw.object == "text_completion"
    assert "".join(part.delta for part in model.stream_complete(QUESTION)) == whole.text
    assert run(model.acomplete(QUESTION)).text == whole.text
    assert make().complete(QUESTION).text == make().chat([ChatMessage(role="user", content=QUESTION)]).message.content


def test_a_tool_that_must_be_called(make):
    for seed in range(4):
        model = drawn(make, seed)
        answer = model.chat_with_tools([TOOL], user_msg=QUESTION, tool_required=True)
        assert answer.raw.choices[0].finish_reason == "tool_calls"
        call, = model.get_tool_calls_from_response(answer)
        assert call.tool_name == "get_weather"
        Forecast.model_validate(call.tool_kwargs)


def test_a_streamed_call_is_the_same(make):
    model = drawn(make, 1)
    last = list(model.stream_chat_with_tools([TOOL], user_msg=QUESTION, tool_required=True))[-1]
    whole = model.chat_with_tools([TOOL], user_msg=QUESTION, tool_required=True)
    streamed, = model.get_tool_calls_from_response(last)
    call, = model.get_tool_calls_from_response(whole)
    assert (streamed.tool_name, streamed.tool_kwargs) == (call.tool_name, call.tool_kwargs)


def test_tools_that_need_not_be_called(make):
    model = drawn(make, 2)
    held = {"extra_body": held_to_calls("get_weather", 2), "allow_parallel_tool_calls": True}
    calls = model.get_tool_calls_from_response(model.chat_with_tools([TOOL], user_msg=QUESTION, **held))
    assert [call.tool_name for call in calls] == ["get_weather"] * 2
    assert all(TOOL(**call.tool_kwargs).raw_output.startswith(call.tool_kwargs["city"]) for call in calls)
    free = make().chat_with_tools([TOOL], user_msg=QUESTION)
    assert free.message.content and model.get_tool_calls_from_response(free, error_on_no_tool_call=False) == []


def test_a_call_and_its_result_are_told(make):
    model = drawn(make, 3)
    asked = model.chat_with_tools([TOOL], chat_history=list(MESSAGES), tool_required=True)
    call, = model.get_tool_calls_from_response(asked)
    result = ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": call.tool_id})
    answer = make(max_tokens=4).chat_with_tools([TOOL], chat_history=[*MESSAGES, asked.message, result])
    assert answer.additional_kwargs["prompt_tokens"] > asked.additional_kwargs["prompt_tokens"]
    assert answer.additional_kwargs["completion_tokens"] == 4


@pytest.mark.parametrize("by_format", [False, True])
def test_a_pydantic_model(run, make, by_format):
    """By a call of a tool, and by response_format."""
    prompt = PromptTemplate("What is the weather in {city}?")
    for seed in range(3):
        model = drawn(make, seed, should_use_structured_outputs=by_format)
        made = model.structured_predict(Forecast, prompt, city="Bern")
        assert isinstance(made, Forecast)
        assert run(model.astructured_predict(Forecast, prompt, city="Bern")) == made
    assert model.as_structured_llm(Forecast).complete("What is the weather in Bern?").raw == made


@pytest.mark.parametrize("by_format", [False, True])
def test_a_pydantic_model_comes_in_parts(make, by_format):
    """By a tool it leaves the choice to the model, which is therefore held to a call by Pagoda's own field."""
    model = drawn(make, 1, should_use_structured_outputs=by_format)
    held = {} if by_format else {"extra_body": held_to_calls("Forecast")}
    parts = list(model.stream_structured_predict(Forecast, PromptTemplate(QUESTION), llm_kwargs=held))
    assert len(parts) > 1
    Forecast.model_validate(parts[-1].model_dump())


def test_logprobs(make):
    answer = make(max_tokens=5, logprobs=True, top_logprobs=3).chat(MESSAGES)
    assert len(answer.logprobs) == 5
    for place in answer.logprobs:
        assert len(place) == 3 and all(top.logprob <= 0 for top in place)


def test_stop(make):
    text = make().chat(MESSAGES).message.content
    letter = a_letter_of(text)
    answer = make().chat(MESSAGES, stop=[letter])
    assert answer.message.content == text[:text.index(letter)] and answer.raw.choices[0].finish_reason == "stop"


def test_errors(make):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        make("no-such-model").chat(MESSAGES)
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        make().complete(TOO_LONG)
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        list(make("no-such-model", is_chat_model=False).stream_complete(QUESTION))
