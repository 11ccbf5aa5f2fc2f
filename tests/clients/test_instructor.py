"""Instructor's modes for OpenAI's clients against `pagoda serve`."""

from collections.abc import Iterable

import instructor
import openai
import pytest
from forecast import CHAT, MODEL, TOO_LONG, Forecast, held_to_calls
from instructor import Mode
from instructor.core import IncompleteOutputException, InstructorRetryException
from pydantic import BaseModel, ConfigDict
from waiting import HANGS_AFTER_S

SEEDS = range(4)
# The modes whose requests hold the answer to the model by themselves.
HELD = [Mode.TOOLS, Mode.TOOLS_STRICT, Mode.JSON_SCHEMA]


@pytest.fixture(scope="module")
def client(base_url):
    return openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=HANGS_AFTER_S)


@pytest.fixture(scope="module")
def async_client(base_url):
    return openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=HANGS_AFTER_S)


def asked(seed=1, **fields):
    return {"model": MODEL, "messages": CHAT, "max_retries": 0, "max_tokens": 300, "seed": seed, **fields}


@pytest.mark.parametrize("mode", HELD)
def test_a_model_is_held(client, mode):
    patched = instructor.from_openai(client, mode=mode)
    for seed in SEEDS:
        made, answer = patched.create_with_completion(response_model=Forecast, **asked(seed))
        assert isinstance(made, Forecast)
        assert answer.choices[0].finish_reason == ("stop" if mode == Mode.JSON_SCHEMA else "tool_calls")
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("mode", HELD)
def test_async(run, client, async_client, mode):
    whole = instructor.from_openai(client, mode=mode).create(response_model=Forecast, **asked())
    made = run(instructor.from_openai(async_client, mode=mode).create(response_model=Forecast, **asked()))
    assert made.model_dump() == whole.model_dump()  # each is of a class of its own


@pytest.mark.parametrize("mode", HELD)
def test_a_model_comes_in_parts(client, mode):
    patched = instructor.from_openai(client, mode=mode)
    parts = list(patched.create_partial(response_model=Forecast, **asked()))
    assert len(parts) > 2 and parts[0].sunny is None
    Forecast.model_validate(parts[-1].model_dump())


def test_markdown(client):
    """The mode asks in words alone, so that Pagoda's own field does the holding."""
    patched = instructor.from_openai(client, mode=Mode.MD_JSON)
    form = {"structured_outputs": {"json": Forecast.model_json_schema()}}
    for seed in SEEDS:
        assert isinstance(patched.create(response_model=Forecast, **asked(seed, extra_body=form)), Forecast)


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


def test_any_object(client):
    """The mode is `json_object`; an object of random weights may go on for long, but what ends is one."""
    patched = instructor.from_openai(client, mode=Mode.JSON)
    num_made = 0
    for seed in range(10):
        try:
            assert isinstance(patched.create(response_model=Anything, **asked(seed)), Anything)
            num_made += 1
        except IncompleteOutputException as cut:
            assert cut.last_completion.choices[0].message.content.lstrip().startswith("{")
    assert num_made > 0


def test_parallel_tools(client):
    patched = instructor.from_openai(client, mode=Mode.PARALLEL_TOOLS)
    made = list(patched.create(response_model=Iterable[Forecast], **asked(extra_body=held_to_calls("Forecast", 3))))
    assert len(made) == 3 and all(isinstance(one, Forecast) for one in made)


def test_tools_of_responses(client):
    """The mode sends the schema as the tool that must be called and as the format of the text."""
    patched = instructor.from_openai(client, mode=Mode.RESPONSES_TOOLS)
    for seed in SEEDS:
        fields = {"model": MODEL, "messages": CHAT, "max_retries": 0, "max_output_tokens": 300}
        assert isinstance(patched.create(response_model=Forecast, **fields, extra_body={"seed": seed}), Forecast)


def test_what_is_cut_off_is_said(client):
    patched = instructor.from_openai(client, mode=Mode.TOOLS)
    with pytest.raises(IncompleteOutputException) as caught:
        patched.create(response_model=Forecast, **asked(max_tokens=30))
    assert caught.value.last_completion.choices[0].finish_reason == "length"


@pytest.mark.parametrize("fields, error", [
    ({"model": "no-such-model"}, openai.NotFoundError),
    ({"messages": [{"role": "user", "content": TOO_LONG}]}, openai.BadRequestError)])
def test_errors(client, fields, error):
    with pytest.raises(InstructorRetryException) as caught:
        instructor.from_openai(client, mode=Mode.TOOLS).create(response_model=Forecast, **asked(**fields))
    assert isinstance(caught.value.__cause__, error)
