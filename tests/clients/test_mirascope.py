"""Mirascope's calls over OpenAI's two APIs, Anthropic's and Ollama's."""

import pytest
from forecast import MODEL, QUESTION, Forecast
from mirascope import llm
from orders import ANSWER, CITY, HELLO, SAY_CALL, SAY_CALLS, SAY_HELLO, WEATHER
from orders import MODEL as FAKE


@llm.tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return WEATHER


@pytest.fixture(scope="module", autouse=True)
def providers(fake, served):
    llm.register_provider("openai", scope="fake/", base_url=fake.url + "/v1", api_key="none")
    llm.register_provider("openai", scope="served/", base_url=served.url + "/v1", api_key="none")
    llm.register_provider("anthropic", scope="anthropic/", base_url=fake.url, api_key="none")


@pytest.fixture(params=[f"fake/{FAKE}:completions", f"fake/{FAKE}:responses", f"anthropic/{FAKE}"],
                ids=["chats", "responses", "messages"])
def model(request):
    return llm.Model(request.param, max_tokens=300)


def test_a_text_whole_and_streamed(model):
    answer = model.call(SAY_HELLO)
    assert answer.text() == HELLO and answer.usage.output_tokens > 1
    stream = model.stream(SAY_HELLO)
    parts = list(stream.text_stream())
    assert len(parts) > 2 and "".join(parts).rstrip("\n") == HELLO  # a new line ends each of its texts


def test_async(run, model):
    assert run(model.call_async(SAY_HELLO)).text() == HELLO


def test_a_tool_is_called_and_its_result_is_told(model):
    called = model.call(SAY_CALLS, tools=[get_weather])
    assert called.text().strip() == "Look:" and len(called.tool_calls) == 2
    outputs = called.execute_tools()
    assert [output.result for output in outputs] == [WEATHER] * 2
    answer = called.resume(outputs)
    assert answer.text() == ANSWER and not answer.tool_calls


def test_a_streamed_loop(model):
    stream = model.stream(SAY_CALL, tools=[get_weather])
    stream.finish()
    made, = stream.tool_calls
    assert made.name == "get_weather" and CITY in made.args
    stream = stream.resume(stream.execute_tools())
    assert "".join(stream.text_stream()).rstrip("\n") == ANSWER


def test_the_conversation_goes_on(model):
    first = model.call(SAY_HELLO)
    second = first.resume(f"say {ANSWER}")
    assert second.text() == ANSWER and second.usage.input_tokens > first.usage.input_tokens


@pytest.mark.parametrize("api", ["completions", "responses"])
@pytest.mark.parametrize("mode", ["strict", "tool"])
def test_a_form(api, mode):
    model = llm.Model(f"served/{MODEL}:{api}", max_tokens=300)
    for _ in range(3):
        answer = model.call(QUESTION, format=llm.format(Forecast, mode=mode))
        assert isinstance(answer.parse(), Forecast)


def test_a_form_comes_in_parts():
    stream = llm.Model(f"served/{MODEL}:completions", max_tokens=300).stream(QUESTION, format=Forecast)
    parts = list(stream.structured_stream())
    assert len(parts) > 2 and isinstance(stream.parse(), Forecast)


def test_errors():
    for name in ("fake/no-such-model:completions", "fake/no-such-model:responses", "anthropic/no-such-model"):
        with pytest.raises(llm.NotFoundError, match="no-such-model"):
            llm.Model(name, max_tokens=10).call(SAY_HELLO)
