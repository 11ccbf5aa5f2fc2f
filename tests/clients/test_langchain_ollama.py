"""LangChain's models for Ollama's API against Pagoda."""

import ollama
import pytest
from forecast import MODEL, QUESTION, Forecast
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, SAY_THOUGHT, SYSTEM, THOUGHT, WEATHER
from orders import MODEL as FAKE


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return WEATHER


def chat(server, model=FAKE, **fields):
    return ChatOllama(base_url=server.url, model=model, **fields)


def asked(text):
    return [SystemMessage(SYSTEM), HumanMessage(text)]


def whole_of(chunks):
    chunks = list(chunks)
    assert len(chunks) > 1
    return sum(chunks[1:], chunks[0])


def test_invoke(fake):
    answer = chat(fake, validate_model_on_init=True).invoke(asked(SAY_HELLO))
    assert answer.content == HELLO
    assert answer.response_metadata["done_reason"] == "stop" and answer.response_metadata["model"] == FAKE
    usage = answer.usage_metadata
    assert usage["output_tokens"] > 1 and usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_a_stream_is_the_same_answer(run, fake):
    model = chat(fake)
    streamed = whole_of(model.stream(asked(SAY_HELLO)))
    assert streamed.content == HELLO and streamed.response_metadata["done_reason"] == "stop"
    assert streamed.usage_metadata == model.invoke(asked(SAY_HELLO)).usage_metadata
    assert run(model.ainvoke(asked(SAY_HELLO))).content == HELLO


@pytest.mark.parametrize("streams", [False, True])
def test_a_tool_is_called_and_its_result_is_told(fake, streams):
    model = chat(fake).bind_tools([get_weather])

    def ask(messages):
        return whole_of(model.stream(messages)) if streams else model.invoke(messages)

    called = ask(asked(SAY_CALLS))
    assert called.content.strip() == "Look:"
    assert [call["args"] for call in called.tool_calls] == [{"city": CITY}, {"city": "Bern"}]
    results = [get_weather.invoke(call) for call in called.tool_calls]
    answer = ask([*asked(SAY_CALLS), called, *results])
    assert answer.content == ANSWER and answer.tool_calls == []
    assert answer.usage_metadata["input_tokens"] > called.usage_metadata["input_tokens"]


def test_a_call_without_a_text(run, fake):
    called = run(chat(fake).bind_tools([get_weather]).ainvoke(asked(SAY_CALL)))
    assert called.content == "" and [call["args"] for call in called.tool_calls] == [{"city": CITY}]


def test_thoughts(thinking):
    model = chat(thinking, reasoning=True)
    for answer in (model.invoke(asked(SAY_THOUGHT)), whole_of(model.stream(asked(SAY_THOUGHT)))):
        assert answer.additional_kwargs["reasoning_content"] == THOUGHT
        assert answer.content.strip() == "Then I answer."


def test_structured_output(served):
    for seed in range(3):
        model = chat(served, MODEL, num_predict=300, seed=seed).with_structured_output(Forecast, method="json_schema")
        assert isinstance(model.invoke(asked(QUESTION)), Forecast)


def test_any_object(served):
    answer = chat(served, MODEL, num_predict=40, seed=1, format="json").invoke(asked(QUESTION))
    assert answer.content.lstrip().startswith("{")


def test_texts(fake):
    model = OllamaLLM(base_url=fake.url, model=FAKE)
    assert model.invoke(SAY_HELLO) == HELLO
    assert "".join(model.stream(SAY_HELLO)) == HELLO


def test_embeddings(run, fake):
    model = OllamaEmbeddings(base_url=fake.url, model=FAKE)
    first, second = model.embed_documents(["one", "another"])
    assert first != second and model.embed_query("one") == run(model.aembed_query("one")) == first


def test_errors(fake):
    with pytest.raises(ollama.ResponseError, match="no-such-model") as caught:
        chat(fake, "no-such-model").invoke(asked(SAY_HELLO))
    assert caught.value.status_code == 404
    with pytest.raises(ValueError, match="no-such-model"):
        chat(fake, "no-such-model", validate_model_on_init=True)
