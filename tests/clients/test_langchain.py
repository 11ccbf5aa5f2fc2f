"""LangChain's models for OpenAI's API against `pagoda serve`."""

import jsonschema
import openai
import pytest
from forecast import CHAT, MODEL, QUESTION, SCHEMA, TOO_LONG, TOOLS, Forecast, a_letter_of, held_to_calls
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from waiting import HANGS_AFTER_S

SCHEMAS = {one["function"]["name"]: one["function"]["parameters"] for one in TOOLS}
MESSAGES = [SystemMessage(CHAT[0]["content"]), HumanMessage(CHAT[1]["content"])]


@tool
def get_weather(forecast: Forecast) -> str:
    """The weather of a city."""
    return f"{forecast.city}: {forecast.sunny}"


@pytest.fixture(scope="module")
def chat(base_url):
    def make(model=MODEL, **fields):
        return ChatOpenAI(base_url=base_url, api_key="none", model=model, max_retries=0, timeout=HANGS_AFTER_S,
                          **fields)

    return make


@pytest.fixture(scope="module")
def greedy(chat):
    return chat(temperature=0, max_tokens=8)


@pytest.fixture(scope="module")
def whole(greedy):
    return greedy.invoke(MESSAGES)


def drawn(chat, seed=1):
    """A model that may take as many tokens as a call or a form needs."""
    return chat(seed=seed, max_tokens=300)


def test_invoke(whole):
    assert isinstance(whole, AIMessage) and whole.content
    assert whole.response_metadata["finish_reason"] == "length" and whole.response_metadata["model_name"] == MODEL
    usage = whole.usage_metadata
    assert usage["output_tokens"] == 8 and usage["total_tokens"] == usage["input_tokens"] + 8


def test_a_stream_is_the_same_answer(greedy, whole):
    chunks = list(greedy.stream(MESSAGES, stream_usage=True))
    assert len(chunks) > 2
    message = sum(chunks[1:], chunks[0])
    assert message.content == whole.content
    assert message.response_metadata["finish_reason"] == "length"
    assert message.usage_metadata["input_tokens"] == whole.usage_metadata["input_tokens"]
    assert message.usage_metadata["output_tokens"] == 8


def test_async(run, greedy, whole):
    async def ask():
        answer = await greedy.ainvoke(MESSAGES)
        parts = [chunk.content async for chunk in greedy.astream(MESSAGES)]
        return [answer.content, "".join(parts)]

    assert run(ask()) == [whole.content] * 2


def test_batches(run, greedy, whole):
    answers = greedy.batch([MESSAGES, MESSAGES[1:], MESSAGES])
    assert answers[0].content == answers[2].content == whole.content
    assert 0 < answers[1].usage_metadata["input_tokens"] < whole.usage_metadata["input_tokens"]
    again = run(greedy.abatch([MESSAGES, MESSAGES[1:]]))
    assert [answer.content for answer in again] == [answer.content for answer in answers[:2]]


def test_a_chain_of_a_prompt_and_a_model(greedy, whole):
    human = QUESTION.replace("Bern", "{city}")
    prompt = ChatPromptTemplate.from_messages([("system", CHAT[0]["content"]), ("human", human)])
    assert (prompt | greedy).invoke({"city": "Bern"}).content == whole.content


def test_tools_that_need_not_be_called(greedy, whole):
    answer = greedy.bind_tools(TOOLS).invoke(MESSAGES)
    assert answer.content and answer.tool_calls == []
    # The prompt tells of them.
    assert answer.usage_metadata["input_tokens"] > whole.usage_metadata["input_tokens"] + 100


def test_calls_of_a_free_choice(chat):
    model = chat(seed=1, max_tokens=300, extra_body=held_to_calls("Forecast", 2)).bind_tools([Forecast])
    answer = model.invoke(MESSAGES)
    assert [call["name"] for call in answer.tool_calls] == ["Forecast"] * 2
    for call in answer.tool_calls:
        Forecast.model_validate(call["args"])
    chunks = list(model.stream(MESSAGES))
    streamed = sum(chunks[1:], chunks[0])
    assert [call["args"] for call in streamed.tool_calls] == [call["args"] for call in answer.tool_calls]


def test_tools_that_must_be_called(chat):
    model = drawn(chat).bind_tools(TOOLS, tool_choice="required", parallel_tool_calls=False)
    answer = model.invoke(MESSAGES)
    call, = answer.tool_calls
    assert answer.response_metadata["finish_reason"] == "tool_calls" and answer.invalid_tool_calls == []
    jsonschema.validate(call["args"], SCHEMAS[call["name"]])


def test_a_named_tool(chat):
    for seed in range(4):
        model = drawn(chat, seed).bind_tools(TOOLS, tool_choice="get_weather", parallel_tool_calls=False)
        call, = model.invoke(MESSAGES).tool_calls
        assert call["name"] == "get_weather"
        jsonschema.validate(call["args"], SCHEMA)


def test_a_streamed_call_is_the_same(chat):
    model = drawn(chat).bind_tools(TOOLS, tool_choice="required", parallel_tool_calls=False)
    chunks = list(model.stream(MESSAGES))
    assert sum(bool(chunk.tool_call_chunks) for chunk in chunks) > 1
    streamed, = sum(chunks[1:], chunks[0]).tool_calls
    call, = model.invoke(MESSAGES).tool_calls
    assert (streamed["name"], streamed["args"]) == (call["name"], call["args"])


@pytest.mark.parametrize("strict", [None, True])
def test_a_tool_made_of_a_function_is_run_and_told(chat, strict):
    model = drawn(chat).bind_tools([get_weather], tool_choice="any", parallel_tool_calls=False, strict=strict)
    asked = model.invoke(MESSAGES)
    call, = asked.tool_calls
    result = get_weather.invoke(call)
    assert isinstance(result, ToolMessage)
    answer = chat(max_tokens=4, seed=1).bind_tools([get_weather]).invoke([*MESSAGES, asked, result])
    assert answer.usage_metadata["input_tokens"] > asked.usage_metadata["input_tokens"]
    assert answer.usage_metadata["output_tokens"] == 4


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(chat, method):
    for seed in range(3):
        answer = drawn(chat, seed).with_structured_output(Forecast, method=method).invoke(MESSAGES)
        assert isinstance(answer, Forecast)


def test_structured_output_of_a_dict_and_streamed(chat):
    model = drawn(chat).with_structured_output({"title": "forecast", **SCHEMA}, method="json_schema")
    whole = model.invoke(MESSAGES)
    jsonschema.validate(whole, SCHEMA)
    assert list(model.stream(MESSAGES))[-1] == whole


def test_structured_output_async_with_the_message(run, chat):
    model = drawn(chat).with_structured_output(Forecast, method="json_schema", include_raw=True)
    answer = run(model.ainvoke(MESSAGES))
    assert answer["parsing_error"] is None and isinstance(answer["parsed"], Forecast)
    assert answer["raw"].response_metadata["finish_reason"] == "stop"


def test_logprobs(chat):
    answer = chat(temperature=0, max_tokens=5, logprobs=True, top_logprobs=3).invoke(MESSAGES)
    places = answer.response_metadata["logprobs"]["content"]
    assert len(places) == 5
    for place in places:
        assert len(place["top_logprobs"]) == 3
        assert place["logprob"] == max(top["logprob"] for top in place["top_logprobs"]) <= 0  # it is greedy


def test_stop(greedy, whole):
    letter = a_letter_of(whole.content)
    answer = greedy.invoke(MESSAGES, stop=[letter])
    assert answer.response_metadata["finish_reason"] == "stop"
    assert answer.content == whole.content[:whole.content.index(letter)]


def test_several_answers_and_their_seed(chat):
    def texts(seed):
        return [answer.text for answer in chat(n=3, seed=seed, max_tokens=8).generate([MESSAGES]).generations[0]]

    assert texts(5) == texts(5) != texts(6)
    assert len(set(texts(5))) == 3


def test_responses(chat):
    model = chat(use_responses_api=True, temperature=0, max_tokens=16)
    answer = model.invoke(MESSAGES)
    assert answer.response_metadata["status"] == "incomplete" and answer.usage_metadata["output_tokens"] == 16
    assert answer.text == chat(temperature=0, max_tokens=16).invoke(MESSAGES).content
    chunks = list(model.stream(MESSAGES))
    assert sum(chunks[1:], chunks[0]).text == answer.text


def test_calls_and_forms_of_responses(chat):
    model = chat(use_responses_api=True, max_tokens=300, extra_body={"seed": 1})
    bound = model.bind_tools(TOOLS, tool_choice="required", parallel_tool_calls=False)
    call, = bound.invoke(MESSAGES).tool_calls
    jsonschema.validate(call["args"], SCHEMAS[call["name"]])
    assert isinstance(model.with_structured_output(Forecast).invoke(MESSAGES), Forecast)


def test_verbosity_changes_nothing(chat, whole):
    assert chat(temperature=0, max_tokens=8, verbosity="low").invoke(MESSAGES).content == whole.content


def test_a_regex_holds_a_response(chat):
    model = chat(use_responses_api=True, max_tokens=16, extra_body={"structured_outputs": {"regex": "yes|no"}})
    assert model.invoke(MESSAGES).text in ("yes", "no")


def test_text_completions(base_url):
    model = OpenAI(base_url=base_url, api_key="none", model=MODEL, temperature=0, max_tokens=8, max_retries=0,
                   timeout=HANGS_AFTER_S)
    whole = model.invoke(QUESTION)
    assert whole and "".join(model.stream(QUESTION)) == whole
    made = model.generate([QUESTION, "A"])
    assert made.generations[0][0].text == whole and made.generations[1][0].generation_info["finish_reason"] == "length"
    assert made.llm_output["token_usage"]["completion_tokens"] == 16


def test_errors(chat):
    with pytest.raises(openai.NotFoundError, match="no-such-model"):
        chat("no-such-model").invoke(MESSAGES)
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        chat().invoke(TOO_LONG)
    with pytest.raises(openai.BadRequestError, match="temperature"):
        list(chat(temperature=-1).stream(MESSAGES))


def test_embeddings_of_documents_and_of_a_query(base_url):
    embeddings = OpenAIEmbeddings(base_url=base_url, api_key="none", model=MODEL, max_retries=0, timeout=HANGS_AFTER_S,
                                  check_embedding_ctx_length=False)  # or it would count tokens of another model's
    documents = embeddings.embed_documents(["the river", "the paper mill", "the river"])
    assert documents[0] == documents[2] != documents[1]
    assert embeddings.embed_query("the river") == documents[0]
    assert sum(number * number for number in documents[0]) == pytest.approx(1)
