"""Pydantic AI's agents and models for OpenAI's APIs against `pagoda serve`."""

import pytest
from forecast import CHAT, MODEL, QUESTION, TOO_LONG, Forecast, held_to_calls
from openai import AsyncOpenAI
from pydantic_ai import Agent, NativeOutput, PromptedOutput, ToolOutput
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition
from waiting import HANGS_AFTER_S

GREEDY = {"temperature": 0, "max_tokens": 8}
SYSTEM = CHAT[0]["content"]


@pytest.fixture(scope="module")
def provider(base_url):
    client = AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=HANGS_AFTER_S)
    return OpenAIProvider(openai_client=client)


@pytest.fixture(scope="module")
def model(provider):
    return OpenAIChatModel(MODEL, provider=provider)


@pytest.fixture(scope="module")
def whole(run, model):
    return run(Agent(model, instructions=SYSTEM).run(QUESTION, model_settings=GREEDY))


def drawn(seed):
    """Settings with as many tokens as a call or a form needs."""
    return {"seed": seed, "max_tokens": 300, "parallel_tool_calls": False}


def test_run(whole):
    assert isinstance(whole.output, str) and whole.output
    assert whole.usage.requests == 1 and whole.usage.output_tokens == 8 and whole.usage.input_tokens > 8
    response = whole.all_messages()[-1]
    assert response.model_name == MODEL and response.finish_reason == "length"


def test_a_stream_is_the_same_answer(run, model, whole):
    async def ask():
        async with Agent(model, instructions=SYSTEM).run_stream(QUESTION, model_settings=GREEDY) as result:
            parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
            return parts, result.usage

    parts, usage = run(ask())
    assert len(parts) > 1 and "".join(parts) == whole.output
    assert (usage.input_tokens, usage.output_tokens) == (whole.usage.input_tokens, 8)


def test_the_conversation_goes_on(run, model, whole):
    agent = Agent(model, instructions=SYSTEM)
    more = run(agent.run("And in Lima?", message_history=whole.all_messages(), model_settings=GREEDY))
    assert more.usage.input_tokens > whole.usage.input_tokens + 8


@pytest.mark.parametrize("form", [ToolOutput, NativeOutput])
def test_an_output_of_a_model(run, model, form):
    agent = Agent(model, output_type=form(Forecast), retries=0)
    for seed in range(4):
        result = run(agent.run(QUESTION, model_settings=drawn(seed)))
        assert isinstance(result.output, Forecast) and result.usage.requests == 1


def test_an_output_asked_in_words(run, model):
    """The mode asks for any object by a field, and for the schema in words; this request has it in the field too."""
    form = {"name": "forecast", "schema": Forecast.model_json_schema()}
    held = {"response_format": {"type": "json_schema", "json_schema": form}}
    agent = Agent(model, output_type=PromptedOutput(Forecast), retries=0)
    assert isinstance(run(agent.run(QUESTION, model_settings={**drawn(1), "extra_body": held})).output, Forecast)


@pytest.mark.parametrize("form", [ToolOutput, NativeOutput])
def test_a_streamed_output_is_the_same(run, model, form):
    agent = Agent(model, output_type=form(Forecast), retries=0)

    async def ask():
        async with agent.run_stream(QUESTION, model_settings=drawn(2)) as result:
            return [part async for part in result.stream_output(debounce_by=None)]

    assert run(ask())[-1] == run(agent.run(QUESTION, model_settings=drawn(2))).output


def test_one_of_several_outputs(run, model):
    class Refusal(Forecast):
        """No forecast can be made."""

    agent = Agent(model, output_type=[Forecast, Refusal], retries=0)
    for seed in range(4):
        assert type(run(agent.run(QUESTION, model_settings=drawn(seed))).output) in (Forecast, Refusal)


def agent_with_a_tool(model, calls):
    agent = Agent(model, instructions=SYSTEM, retries=0)

    @agent.tool_plain
    def get_weather(forecast: Forecast) -> str:
        """The weather of a city."""
        calls.append(forecast)
        return "sunny"

    return agent


def first_step_alone(first, later):
    """Settings that differ between an agent's first request and those that follow."""
    return lambda context: first if context.run_step == 1 else later


def test_a_tool_is_called_and_its_result_is_told(run, model):
    calls = []
    first = {**drawn(1), "parallel_tool_calls": True, "extra_body": held_to_calls("get_weather", 2)}
    settings = first_step_alone(first, {"max_tokens": 4})
    result = run(agent_with_a_tool(model, calls).run(QUESTION, model_settings=settings))
    assert len(calls) == 2 and all(isinstance(call, Forecast) for call in calls)
    assert result.usage.requests == 2 and result.usage.tool_calls == 2 and result.output
    told = [part for message in result.all_messages() if isinstance(message, ModelRequest)
            for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in told] == ["sunny"] * 2
    first, second = (message.usage for message in result.all_messages() if isinstance(message, ModelResponse))
    assert second.input_tokens > first.input_tokens


@pytest.mark.parametrize("choice", ["required", ["get_weather"]])
def test_a_request_that_must_call(run, model, choice):
    names = ["get_weather", "other"]
    tools = [ToolDefinition(name=name, parameters_json_schema=Forecast.model_json_schema()) for name in names]
    for seed in range(4):
        settings = {**drawn(seed), "tool_choice": choice}
        response = run(model_request(model, [ModelRequest.user_text_prompt(QUESTION)], model_settings=settings,
                                     model_request_parameters=ModelRequestParameters(function_tools=tools)))
        part, = response.parts
        assert isinstance(part, ToolCallPart) and response.finish_reason == "tool_call"
        assert part.tool_name in (names if choice == "required" else choice)
        Forecast.model_validate(part.args_as_dict())


def test_some_tools_of_responses(run, provider):
    model = OpenAIResponsesModel(MODEL, provider=provider)
    tools = [ToolDefinition(name=name, parameters_json_schema=Forecast.model_json_schema()) for name in "abc"]
    settings = {"tool_choice": ["a", "b"], "max_tokens": 300, "parallel_tool_calls": False}
    for seed in range(4):
        response = run(model_request(model, [ModelRequest.user_text_prompt(QUESTION)],
                                     model_settings={**settings, "extra_body": {"seed": seed}},
                                     model_request_parameters=ModelRequestParameters(function_tools=tools)))
        part, = response.parts
        assert part.tool_name in ("a", "b")
        Forecast.model_validate(part.args_as_dict())


def test_responses(run, provider, model):
    responses = OpenAIResponsesModel(MODEL, provider=provider)
    settings = {"temperature": 0, "max_tokens": 16}
    agents = [Agent(one, instructions=SYSTEM) for one in (responses, model)]
    answer, other = (run(agent.run(QUESTION, model_settings=settings)) for agent in agents)
    assert answer.output == other.output and answer.usage.output_tokens == 16
    for form in (ToolOutput, NativeOutput):
        result = run(Agent(responses, output_type=form(Forecast), retries=0).run(
            QUESTION, model_settings={"max_tokens": 300, "parallel_tool_calls": False}))
        assert isinstance(result.output, Forecast)


@pytest.mark.parametrize("name, prompt, status, code", [("no-such-model", QUESTION, 404, "model_not_found"),
                                                        (MODEL, TOO_LONG, 400, "context_length_exceeded")])
def test_errors(run, provider, name, prompt, status, code):
    with pytest.raises(ModelHTTPError) as caught:
        run(Agent(OpenAIChatModel(name, provider=provider)).run(prompt))
    assert caught.value.status_code == status and caught.value.body["code"] == code
