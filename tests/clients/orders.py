"""Orders to pagoda_fake_server's model, which says what the last line of its prompt asks it to say.

A tool's result is an order too: the model answers with it where the client has given it back.
"""

import json

MODEL = "fake-model"
CITY = "Zürich"
SYSTEM = "Be brief."
HELLO = "hello 猫"
SAY_HELLO = f"say {HELLO}"
ANSWER = f"It is sunny in {CITY}."
# The result of get_weather.
WEATHER = f"say {ANSWER}"
THOUGHT = "First I think."
SAY_THOUGHT = f"say <think>{THOUGHT}</think> Then I answer."


def call(name, **arguments):
    """The text by which the model calls a tool."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


CALL = call("get_weather", city=CITY)
SAY_CALL = f"say {CALL}"
# Two calls behind a text.
SAY_CALLS = f"say Look: {CALL}{call('get_weather', city='Bern')}"
