"""DSPy's modules over `pagoda serve`, by its adapters for marked texts, for XML and for JSON, and by its two engines.

Prompts end with an instruction, where an order could not stand, so that answers are held by grammars. Fields of Pagoda's own go
through LiteLLM, the name openai/ of DSPy; a declared provider is asked by DSPy itself, which passes on no such fields.
"""

import dspy
import pytest
from dspy.lm15 import AccessPolicy, ModelSupport, OpenAIChatCompat, ProviderDefinition, register_provider
from forecast import MODEL, QUESTION, TOO_LONG, City, Days
from waiting import HANGS_AFTER_S

CITIES = "(Bern|Lima|Zürich)"


class Weather(dspy.Signature):
    """Forecasts the weather."""

    question: str = dspy.InputField()
    city: City = dspy.OutputField()
    days: Days = dspy.OutputField()


class Asked(dspy.Signature):
    """Asks tools for what it needs."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def get_weather(city: City) -> str:
    """The weather of a city."""
    return f"In {city} it is sunny."


def held_to(regex):
    return {"extra_body": {"structured_outputs": {"regex": regex}}}


def marked(**regexes):
    """Holds an answer to the fields that ChatAdapter reads."""
    parts = [rf"\[\[ ## {name} ## \]\]\n{regex}\n\n" for name, regex in regexes.items()]
    return held_to("".join(parts) + r"\[\[ ## completed ## \]\]")


@pytest.fixture(scope="module")
def litellm(base_url):
    def make(**fields):
        return dspy.LM(f"openai/{MODEL}", api_base=base_url, api_key="none", cache=False, num_retries=0,
                       timeout=HANGS_AFTER_S, max_tokens=400, **fields)

    return make


@pytest.fixture(scope="module")
def native(base_url):
    where = AccessPolicy(provider="pagoda", base_url=base_url)
    register_provider(ProviderDefinition.chat(where, compat=OpenAIChatCompat()),
                      supports=ModelSupport(function_calling=True, response_schema=True))

    def make(model=MODEL, **fields):
        return dspy.LM(f"pagoda/{model}", api_key="none", cache=False, num_retries=0, engine="lm15",
                       **{"max_tokens": 400, **fields})

    return make


def check(made):
    assert made.city in City.__args__ and made.days in Days.__args__


def test_marked_fields(run, litellm):
    settings = {"lm": litellm(**marked(city=CITIES, days="[137]")), "adapter": dspy.ChatAdapter()}

    async def ask():
        with dspy.context(**settings):
            return await dspy.Predict(Weather).acall(question=QUESTION)

    with dspy.context(**settings):
        check(dspy.Predict(Weather)(question=QUESTION))
    check(run(ask()))


def test_fields_in_xml(litellm):
    held = held_to(f"<city>\n{CITIES}\n</city>\n<days>\n[137]\n</days>")
    with dspy.context(lm=litellm(**held), adapter=dspy.XMLAdapter()):
        check(dspy.Predict(Weather)(question=QUESTION))


def test_fields_of_a_schema(native):
    with dspy.context(lm=native(), adapter=dspy.JSONAdapter()):
        for _ in range(3):
            check(dspy.Predict(Weather)(question=QUESTION))


def test_a_streamed_field(run, litellm):
    lm = litellm(**marked(answer="[a-z]{20}"))
    stream = dspy.streamify(dspy.Predict("question -> answer"),
                            stream_listeners=[dspy.streaming.StreamListener(signature_field_name="answer")])

    async def ask():
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
            return [part async for part in stream(question=QUESTION)]

    *pieces, made = run(ask())
    text = "".join(piece.chunk for piece in pieces)
    # DSPy's listener may leave the mark of the end in the last piece.
    assert len(pieces) > 1 and text.partition("\n\n[[")[0] == made.answer and len(made.answer) == 20


def test_a_call_that_must_be_made(native):
    tool = dspy.Tool(get_weather)
    with dspy.context(lm=native(tool_choice="required"), adapter=dspy.JSONAdapter()):
        made = dspy.Predict(Asked)(question=QUESTION, tools=[tool]).calls.tool_calls
    assert made and all(call.name == "get_weather" for call in made)
    assert tool(**made[0].args) == get_weather(made[0].args["city"])


def test_a_tool_is_called_and_its_result_is_told(litellm):
    call = marked(next_thought="I look", next_tool_name="get_weather", next_tool_args=rf'\{{"city": "{CITIES}"\}}')
    answer = litellm(**marked(reasoning="I saw", city=CITIES, days="[137]"))
    agent = dspy.ReAct(Weather, tools=[get_weather], max_iters=1)
    agent.react.lm, agent.extract.lm = litellm(**call), answer
    with dspy.context(lm=answer, adapter=dspy.ChatAdapter()):
        made = agent(question=QUESTION)
    check(made)
    told = made.trajectory["observation_0"]
    assert told == get_weather(made.trajectory["tool_args_0"]["city"])
    assert told in answer.history[-1]["messages"][-1]["content"]


def test_a_text(native):
    text, = native(max_tokens=8)("One, two,")
    assert isinstance(text, str) and text


def test_embeddings(base_url):
    embed = dspy.Embedder(f"openai/{MODEL}", api_base=base_url, api_key="none", caching=False)
    assert len(embed(["the river", "the paper mill"])) == 2


def test_errors(native, litellm):
    with pytest.raises(dspy.LMError, match="no-such-model"):
        native("no-such-model")(QUESTION)
    for lm in (native(), litellm()):
        with pytest.raises(dspy.ContextWindowExceededError):
            lm(TOO_LONG)
