"""Guidance's programs over `pagoda serve` as over vLLM, where a grammar in Lark holds each part that the model writes.

Such a grammar may have a JSON Schema, as `%json`, which Pagoda refuses by name; Guidance's model for OpenAI's API sends the
schema as `response_format`.
"""

import openai
import pytest
from forecast import MODEL, QUESTION, Forecast
from guidance import assistant, capture, gen, guidance, models, regex, select, user
from guidance import json as gen_json
from guidance.models.experimental import VLLMModel
from orders import ANSWER, HELLO, SAY_HELLO
from orders import MODEL as FAKE

CITIES = ["Bern", "Lima", "Zürich"]


@guidance(stateless=True)
def nested(model):
    return model + select(["x", "(" + nested() + ")"])


@pytest.fixture(scope="module")
def asked(base_url):
    """A model that has been asked the question."""
    model = VLLMModel(MODEL, base_url=base_url, api_key="none", echo=False)
    with user():
        model += QUESTION
    return model


def answered(model, *parts):
    with assistant():
        for part in parts:
            model += part
    return model


def test_one_of_several(asked):
    for _ in range(4):
        assert answered(asked, select(CITIES, name="city"))["city"] in CITIES


def test_a_regex(asked):
    days = answered(asked, gen(name="days", regex="[1-9][0-9]?"))["days"]
    assert 1 <= int(days) <= 99


def test_a_text_around_what_is_chosen(asked):
    made = answered(asked, "In " + select(CITIES, name="city") + " for " + regex("[1-9]", name="days") + " days.")
    assert made["city"] in CITIES and f"In {made['city']} for {made['days']} days." in str(made)


def test_a_grammar_that_calls_itself(asked):
    text = str(answered(asked, capture(nested(), name="text"))["text"])
    assert text.count("x") == 1 and text == "(" * text.count("(") + "x" + ")" * text.count("(")


def test_a_model(base_url, asked):
    form = gen_json(name="forecast", schema=Forecast)
    model = models.OpenAI(MODEL, base_url=base_url, api_key="none", echo=False)
    with user():
        model += QUESTION
    for _ in range(3):
        Forecast.model_validate_json(answered(model, form)["forecast"])
    with pytest.raises(openai.BadRequestError, match="'%json' is not supported"):
        answered(asked, form)


def test_a_free_text(asked):
    assert answered(asked, gen(name="text", max_tokens=8))["text"]


def test_a_conversation(fake):
    model = models.OpenAI(FAKE, base_url=fake.url + "/v1", api_key="none", echo=False)
    with user():
        model += SAY_HELLO
    model = answered(model, gen(name="first"))
    with user():
        model += f"say {ANSWER}"
    model = answered(model, gen(name="second"))
    assert (model["first"], model["second"]) == (HELLO, ANSWER)
