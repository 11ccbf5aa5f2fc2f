"""OpenAI's Agents SDK against `pagoda serve`, by Responses as it does by itself, and by chat completions."""

import openai
import pytest
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from forecast import CHAT, MODEL, QUESTION, TOO_LONG, City, Days, Forecast, held_to_calls
from waiting import HANGS_AFTER_S

APIS = [OpenAIResponsesModel, OpenAIChatCompletionsModel]
SYSTEM = CHAT[0]["content"]


@pytest.fixture(scope="module")
def client(base_url):
    return openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=HANGS_AFTER_S)


@pytest.fixture(params=APIS, ids=["responses", "chats"])
def model(request, client):
    return request.param(MODEL, client)


def agent(model, tools=(), output_type=None, **settings):
    return Agent(name="Weather", instructions=SYSTEM, model=model, tools=list(tools), output_type=output_type,
                 model_settings=ModelSettings(**settings))


def text_of(events):
    return "".join(event.data.delta for event in events
                   if event.type == "raw_response_event" and event.data.type == "response.output_text.delta")


async def streamed(agent, question=QUESTION):
    """The result of a streamed run, and its events."""
    result = Runner.run_streamed(agent, question)
    return result, [event async for event in result.stream_events()]


def test_run(run, model):
    result = run(Runner.run(agent(model, temperature=0, max_tokens=16), QUESTION))
    assert isinstance(result.final_output, str) and result.final_output
    usage = result.context_wrapper.usage
    assert usage.requests == 1 and usage.output_tokens == 16 and usage.total_tokens == usage.input_tokens + 16


def test_both_apis_answer_alike(run, client):
    agents = [agent(api(MODEL, client), temperature=0, max_tokens=16) for api in APIS]
    assert len({run(Runner.run(asked, QUESTION)).final_output for asked in agents}) == 1


def test_an_output_of_a_model(run, model):
    asked = agent(model, output_type=Forecast, max_tokens=200, temperature=1)
    for _ in range(4):
        result = run(Runner.run(asked, QUESTION))
        assert isinstance(result.final_output, Forecast) and result.context_wrapper.usage.requests == 1


def test_a_stream_is_the_same_answer(run, model):
    """It is one that ends by itself: the SDK takes a streamed response that is cut off for a mistake of the model."""
    asked = agent(model, output_type=Forecast, max_tokens=200, temperature=0, include_usage=True)
    whole = run(Runner.run(asked, QUESTION))
    result, events = run(streamed(asked))
    assert result.final_output == Forecast.model_validate_json(text_of(events)) == whole.final_output
    assert len([event for event in events if event.type == "raw_response_event"]) > 10
    assert result.context_wrapper.usage.output_tokens == whole.context_wrapper.usage.output_tokens > 10


@pytest.fixture
def calls():
    return []


@pytest.fixture
def tool(calls):
    @function_tool
    def get_weather(city: City, days: Days, sunny: bool) -> str:
        """The weather of a city."""
        calls.append(Forecast(city=city, days=days, sunny=sunny))
        return "sunny"

    return get_weather


def test_a_tool_is_called_and_its_result_is_told(run, model, tool, calls):
    """The first request must call; the SDK leaves the choice to the model after that."""
    asked = agent(model, [tool], tool_choice="required", parallel_tool_calls=False, max_tokens=200, temperature=1)
    result = run(Runner.run(asked, QUESTION))
    assert len(calls) == 1
    assert result.context_wrapper.usage.requests == 2 and result.final_output
    called, told, _ = result.new_items
    assert (called.type, told.type, told.output) == ("tool_call_item", "tool_call_output_item", "sunny")
    first, second = (response.usage for response in result.raw_responses)
    assert second.input_tokens > first.input_tokens


def test_a_named_tool_of_a_streamed_run(run, model, tool, calls):
    asked = agent(model, [tool], tool_choice="get_weather", max_tokens=200, temperature=1)
    asked.tool_use_behavior = "stop_on_first_tool"
    result, events = run(streamed(asked))
    assert len(calls) == 1 and result.final_output == "sunny"
    assert [event.name for event in events if event.type == "run_item_stream_event"] == ["tool_called", "tool_output"]


def test_calls_of_a_free_choice(run, client, tool, calls):
    held = held_to_calls("get_weather", 2)
    asked = agent(OpenAIChatCompletionsModel(MODEL, client), [tool], max_tokens=300, extra_body=held)
    asked.tool_use_behavior = "stop_on_first_tool"
    result = run(Runner.run(asked, QUESTION))
    assert len(calls) == 2
    assert result.final_output == "sunny" and result.context_wrapper.usage.requests == 1


def test_an_agent_hands_over_to_another(run, model):
    other = agent(model, temperature=0, max_tokens=16)
    other.name = "Lima"
    first = agent(model, tool_choice="transfer_to_lima", max_tokens=200)
    first.handoffs = [other]
    result = run(Runner.run(first, QUESTION))
    assert result.last_agent is other and result.final_output
    assert result.context_wrapper.usage.requests == 2


def test_the_conversation_goes_on(run, client):
    asked = agent(OpenAIResponsesModel(MODEL, client), temperature=0, max_tokens=16)
    first = run(Runner.run(asked, QUESTION))
    told = run(Runner.run(asked, [*first.to_input_list(), {"role": "user", "content": "And in Lima?"}]))
    kept = run(Runner.run(asked, "And in Lima?", previous_response_id=first.last_response_id))
    assert kept.final_output == told.final_output
    assert kept.context_wrapper.usage.input_tokens > first.context_wrapper.usage.total_tokens


@pytest.mark.parametrize("api", APIS)
def test_errors(run, client, api):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        run(Runner.run(agent(api("no-such-model", client)), QUESTION))
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        run(Runner.run(agent(api(MODEL, client)), TOO_LONG))
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        run(streamed(agent(api("no-such-model", client))))
