"""LiteLLM against `pagoda serve`, by the providers under which it knows such servers."""

import asyncio
import json

import jsonschema
import litellm
import pytest
from forecast import CHAT, MODEL, NAMED, SCHEMA, TOO_LONG, TOOL, TOOLS, Forecast, a_letter_of, held_to_calls
from waiting import HANGS_AFTER_S

litellm.suppress_debug_info = True

ONE_CALL = {"parallel_tool_calls": False, "max_tokens": 200}


@pytest.fixture(scope="module")
def common(base_url):
    return {"model": f"openai/{MODEL}", "api_base": base_url, "api_key": "none", "timeout": HANGS_AFTER_S,
            "num_retries": 0, "messages": CHAT}


@pytest.fixture(scope="module")
def whole(common):
    return litellm.completion(**common, temperature=0, max_tokens=8)


def the_call(answer):
    """The name and the arguments of an answer that is one call."""
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    call, = choice.message.tool_calls
    return call.function.name, json.loads(call.function.arguments)


def test_completion(whole):
    choice = whole.choices[0]
    assert choice.finish_reason == "length" and choice.message.role == "assistant" and choice.message.content
    assert whole.model == MODEL
    assert whole.usage.completion_tokens == 8
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + 8


def test_a_stream_is_the_same_answer(common, whole):
    chunks = list(litellm.completion(**common, temperature=0, max_tokens=8, stream=True,
                                     stream_options={"include_usage": True}))
    built = litellm.stream_chunk_builder(chunks, messages=CHAT)
    assert built.choices[0].message.content == whole.choices[0].message.content
    assert built.choices[0].finish_reason == "length"
    assert built.usage.prompt_tokens == whole.usage.prompt_tokens and built.usage.completion_tokens == 8


def test_async(run, common, whole):
    async def ask():
        answers = await asyncio.gather(*(litellm.acompletion(**common, temperature=0, max_tokens=8) for _ in range(3)))
        stream = await litellm.acompletion(**common, temperature=0, max_tokens=8, stream=True)
        parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return [*(answer.choices[0].message.content for answer in answers), "".join(parts)]

    assert run(ask()) == [whole.choices[0].message.content] * 4


def test_a_batch(common, whole):
    chats = {**common, "messages": [CHAT, CHAT[1:]]}
    first, second = litellm.batch_completion(**chats, temperature=0, max_tokens=8)
    assert first.choices[0].message.content == whole.choices[0].message.content
    assert 0 < second.usage.prompt_tokens < first.usage.prompt_tokens


def test_tools_that_need_not_be_called(common, whole):
    answer = litellm.completion(**common, tools=TOOLS, tool_choice="auto", max_tokens=8, seed=1)
    assert answer.choices[0].finish_reason == "length" and answer.choices[0].message.content
    assert answer.usage.prompt_tokens > whole.usage.prompt_tokens + 100  # the prompt tells of them


def test_calls_of_a_free_choice(common):
    tool = {"type": "function", "function": {"name": "forecast", "parameters": Forecast.model_json_schema()}}
    asked = {**common, "tools": [tool], "max_tokens": 300, "extra_body": held_to_calls("forecast", 2), "seed": 1}
    choice = litellm.completion(**asked).choices[0]
    assert choice.finish_reason == "tool_calls"
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert [name for name, _ in calls] == ["forecast"] * 2
    for _, arguments in calls:
        Forecast.model_validate_json(arguments)
    streamed = litellm.stream_chunk_builder(list(litellm.completion(**asked, stream=True))).choices[0].message
    assert [(call.function.name, call.function.arguments) for call in streamed.tool_calls] == calls


def test_tools_that_must_be_called(common):
    name, arguments = the_call(litellm.completion(**common, tools=TOOLS, tool_choice="required", **ONE_CALL, seed=1))
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    jsonschema.validate(arguments, schemas[name])


def test_a_named_tool(common):
    for seed in range(4):
        answer = litellm.completion(**common, tools=TOOLS, tool_choice=NAMED, **ONE_CALL, seed=seed)
        name, arguments = the_call(answer)
        assert name == "get_weather"
        jsonschema.validate(arguments, SCHEMA)


def test_a_streamed_call_is_the_same(common):
    asked = {**common, "tools": TOOLS, "tool_choice": "required", **ONE_CALL, "seed": 2}
    chunks = list(litellm.completion(**asked, stream=True))
    assert len([chunk for chunk in chunks if chunk.choices[0].delta.tool_calls]) > 1
    assert the_call(litellm.stream_chunk_builder(chunks)) == the_call(litellm.completion(**asked))


def test_a_conversation_with_a_result(common):
    asked = litellm.completion(**common, tools=[TOOL], tool_choice="required", **ONE_CALL, seed=3)
    message = asked.choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "sunny"}
    answer = litellm.completion(**{**common, "messages": [*CHAT, message, result]}, tools=[TOOL], max_tokens=4, seed=3)
    assert answer.usage.prompt_tokens > asked.usage.prompt_tokens and answer.usage.completion_tokens == 4


def test_a_pydantic_model(common):
    drawn = [litellm.completion(**common, response_format=Forecast, max_tokens=200, seed=seed) for seed in range(4)]
    for answer in drawn:
        assert answer.choices[0].finish_reason == "stop"
        Forecast.model_validate_json(answer.choices[0].message.content)


def test_a_json_schema(common):
    form = {"type": "json_schema", "json_schema": {"name": "forecast", "strict": True, "schema": SCHEMA}}
    for seed in range(4):
        answer = litellm.completion(**common, response_format=form, max_tokens=200, seed=seed)
        jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)


def test_logprobs(common):
    answer = litellm.completion(**common, logprobs=True, top_logprobs=3, max_tokens=5, temperature=0)
    places = answer.choices[0].logprobs.content
    assert len(places) == answer.usage.completion_tokens == 5
    for place in places:
        assert len(place.top_logprobs) == 3
        assert place.logprob == max(top.logprob for top in place.top_logprobs) <= 0  # it is greedy


def test_stop(common, whole):
    text = whole.choices[0].message.content
    letter = a_letter_of(text)
    stopped = litellm.completion(**common, temperature=0, max_tokens=8, stop=[letter])
    assert stopped.choices[0].finish_reason == "stop"
    assert stopped.choices[0].message.content == text[:text.index(letter)]


def test_several_answers_and_their_seed(common):
    def texts(seed):
        answer = litellm.completion(**common, n=3, seed=seed, max_tokens=8)
        assert [choice.index for choice in answer.choices] == [0, 1, 2]
        return [choice.message.content for choice in answer.choices]

    assert texts(5) == texts(5) != texts(6)
    assert len(set(texts(5))) == 3


def test_text_completions(common):
    asked = {name: value for name, value in common.items() if name != "messages"}
    answer = litellm.text_completion(**asked, prompt=["One, two,", "A"], max_tokens=4, temperature=0)
    assert [choice.index for choice in answer.choices] == [0, 1] and answer.usage.completion_tokens == 8
    parts = litellm.text_completion(**asked, prompt="One, two,", max_tokens=4, temperature=0, stream=True)
    assert "".join(part.choices[0].text or "" for part in parts) == answer.choices[0].text


def test_responses(common):
    asked = {name: value for name, value in common.items() if name != "messages"}
    response = litellm.responses(**asked, input=CHAT, max_output_tokens=16, temperature=0)
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 16
    events = list(litellm.responses(**asked, input=CHAT, max_output_tokens=16, temperature=0, stream=True))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == response.output[0].content[0].text


@pytest.mark.parametrize("provider, path", [("hosted_vllm", "/v1"), ("anthropic", ""), ("ollama_chat", "")])
def test_other_providers_answer_alike(common, served, whole, provider, path):
    """The same server by vLLM's name, by Anthropic's API and by Ollama's."""
    asked = {**common, "model": f"{provider}/{MODEL}", "api_base": served.url + path}
    answer = litellm.completion(**asked, temperature=0, max_tokens=8)
    assert answer.choices[0].message.content == whole.choices[0].message.content
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.prompt_tokens == whole.usage.prompt_tokens and answer.usage.completion_tokens == 8


def test_errors(common):
    with pytest.raises(litellm.NotFoundError, match="no-such-model"):
        litellm.completion(**{**common, "model": "openai/no-such-model"})
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**{**common, "messages": [{"role": "user", "content": TOO_LONG}]})
    with pytest.raises(litellm.BadRequestError, match="temperature"):
        litellm.completion(**common, temperature=-1)


def test_a_router_falls_back(common, whole):
    def deployment(name, model):
        params = {"model": model, "api_base": common["api_base"], "api_key": "none", "timeout": HANGS_AFTER_S}
        return {"model_name": name, "litellm_params": params}

    router = litellm.Router([deployment("first", "openai/no-such-model"), deployment("second", common["model"])],
                            fallbacks=[{"first": ["second"]}], num_retries=0)
    answer = router.completion("first", CHAT, temperature=0, max_tokens=8)
    assert answer.choices[0].message.content == whole.choices[0].message.content


def test_embeddings(common, run):
    asked = {name: common[name] for name in ("model", "api_base", "api_key", "timeout", "num_retries")}
    answer = litellm.embedding(**asked, input=["the river", "the paper mill"], encoding_format="float")
    assert [one["index"] for one in answer.data] == [0, 1]
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 2
    cut = run(litellm.aembedding(**asked, input="the river", dimensions=16, encoding_format="float",
                                 allowed_openai_params=["dimensions"]))
    assert len(cut.data[0]["embedding"]) == 16 < len(answer.data[0]["embedding"])
