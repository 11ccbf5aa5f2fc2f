"""What the tests of clients ask for: tools and a form that have few values, so that answers of random weights end."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

MODEL = "tiny-llama"
QUESTION = "What is the weather in Bern?"
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
# Takes more tokens than the context of the model has.
TOO_LONG = "rain " * 3000

City = Literal["Bern", "Lima", "Zürich"]
Days = Literal[1, 3, 7]


class Forecast(BaseModel):
    """The weather of the days to come."""

    model_config = ConfigDict(extra="forbid")

    city: City
    days: Days
    sunny: bool


# With a bound on a string and on an integer, for clients that pass a schema on as it is.
SCHEMA = {"type": "object", "required": ["city", "days"], "additionalProperties": False, "properties": {
    "city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 14}}}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather.", "parameters": SCHEMA}}
OTHER_TOOL = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "required": ["number"], "additionalProperties": False, "properties": {
        "number": {"type": "integer", "minimum": 0, "maximum": 9}}}}}
TOOLS = [TOOL, OTHER_TOOL]
NAMED = {"type": "function", "function": {"name": "get_weather"}}
# A model that is free to call does so where its text is held to calls in its own syntax: this one is Forecast's.
CALL_REGEX = (r'<tool_call>\{"name": "NAME", "arguments": \{"city": "(Bern|Lima|Zürich)", "days": [137], '
              r'"sunny": (true|false)\}\}</tool_call>')


def held_to_calls(name, count=1):
    """Fields of a request, besides OpenAI's, that hold it to `count` calls of a tool with Forecast's arguments."""
    return {"structured_outputs": {"regex": "(" + CALL_REGEX.replace("NAME", name) + "){" + str(count) + "}"}}


def a_letter_of(text):
    """One that does not begin the text, for answers to stop at."""
    return next(char for char in text[1:] if char.isascii() and char.isalpha())
