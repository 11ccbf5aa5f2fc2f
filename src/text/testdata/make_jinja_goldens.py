"""Makes jinja_goldens.json: what Jinja2, set up by Hugging Face transformers, makes of chat templates.

  pip install jinja2 transformers
  python make_jinja_goldens.py FOLDER                             (what tools/fetch_chat_templates.py prints)
  python make_jinja_goldens.py FOLDER TEMPLATE CONVERSATION       prints one rendering, to compare with

The templates are other people's, so the golden file has of each only its name, its SHA-256 and, for each of seven
conversations, the rendering's SHA-256 with the first digits of each line's, or the name of the exception. The expressions
of jinja_expressions.txt are our own, and stand there with what they print.

Left out, because no chat template is known to have them: the filters truncate, urlencode, wordwrap, striptags, pprint and
xmlattr, a macro's varargs and kwargs, a unary plus, !r and %r, text times a negative number, methods that are not called.

Templates may change lists here, as Kimi-K2's does: transformers' sandbox refuses that, and we do not.
"""

import hashlib
import json
import pathlib
import re
import sys
from datetime import datetime, timezone

from transformers.utils.chat_template_utils import _compile_jinja_template

HERE = pathlib.Path(__file__).parent
NOW = datetime.fromtimestamp(1721944800, timezone.utc)
LINE_DIGITS = 3
WHITESPACE = [
    "{%- set a = 1 -%} {#- comment -#} {{- a -}} x {%+ if true %}y{% endif +%} z\n  {% if true %}a{% endif %}  \n"
    "{% if true %}b\n{% endif %}c\n   {#- x #}\n   {# y #}\n   z",
    "a\r\n{% if true %}\r\n  b\r\n{% endif %}\r\nc\r{{ 'x\r\ny' }}\r\n",
    "a\n\n",
    "{% raw %}\nA {{ x }}\n{% endraw %}\nB",
    "  {% raw %}\n\n  A\n  {% endraw %}  \n  {%- raw -%}\n A\n {%- endraw -%}\nB {% raw %}  {% endraw %}\n{%+ raw %}\n  {%+ endraw +%}\nx",
    "{% for\n  x in\n  [1, 2]\n  if x %}\n{{ x }}\n{% endfor %}\n",
]


def message(role, content, **rest):
    return {"role": role, "content": content, **rest}


def call(name, arguments, number):
    return {"id": f"call0000{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(name, description, **properties):
    parameters = {"type": "object", "properties": properties}
    if properties:
        parameters["required"] = [next(iter(properties))]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TOOLS = [
    tool("get_weather", "Tells a place's weather, \"as is\" & <now>.",
         place={"type": "string", "description": "City, e.g. Zürich"}, days={"type": "integer", "minimum": 1, "default": 3},
         unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
         at={"type": "object", "properties": {"lon": {"type": "number"}, "lat": {"type": ["number", "null"]}},
             "required": ["lon", "lat"]},
         tags={"type": "array", "items": {"type": "string"}}),
    tool("clock", "The time."),
]
PLACE = '{"place": "Zürich", "days": 2, "at": {"lon": 8.55, "lat": null}, "tags": ["a", "b"], "approx": true}'
# What the openai client's model_dump() makes of an answer.
DUMPED = {"content": "It is 4.", "refusal": None, "role": "assistant", "annotations": None, "audio": None,
          "function_call": None, "tool_calls": None}
CONVERSATIONS = {
    "a question": {"messages": [message("user", "Hello, who are you?")]},
    "several turns": {"messages": [
        message("system", "  Be brief.\nAlways. "), message("user", " Grüß dich!\n\n"),
        message("assistant", "Hello <b>you</b>. "), message("user", "What is 2 + 2?\n")]},
    "tools offered": {"messages": [message("system", "You help."), message("user", "Weather in Zürich?")], "tools": TOOLS},
    "a call and its result": {"messages": [
        message("user", "Weather in Zürich?"),
        message("assistant", None, tool_calls=[call("get_weather", PLACE, 1)]),
        message("tool", '{"sky": "clear", "degrees": 21.5}', tool_call_id="call00001", name="get_weather")], "tools": TOOLS},
    "an answer sent back as the client dumps it": {"messages": [
        message("user", "What is 2 + 2?"), DUMPED, message("user", "And 3 + 3?")]},
    "thinking turned off": {"messages": [
        message("system", "Think well."), message("user", "Is 7 prime?"),
        message("assistant", "Yes, it is.", reasoning_content="Only 1 and 7 divide 7.\nSo it is."),
        message("user", "And 9?")], "kwargs": {"enable_thinking": False}},
    "two calls, answered": {"messages": [
        message("user", "Weather in Oslo, and the time?"),
        message("assistant", "I look it up.", reasoning_content="Two calls.", tool_calls=[
            call("get_weather", '{"unit": "celsius", "place": "Oslo"}', 1), call("clock", "{}", 2)]),
        message("tool", "rain", tool_call_id="call00001", name="get_weather"),
        message("tool", "12:30", tool_call_id="call00002", name="clock"),
        message("assistant", "Rain, at half past twelve.")], "tools": TOOLS, "add_generation_prompt": False},
}


class Habits:
    """What of src/text/rust/text/src/messages.rs depends on the template, said a second time."""

    def __init__(self, template):
        tags = re.findall(r"\{%(.*?)%\}", template, re.S)
        content = r"\S*(?:\.content|\['content'\]|\[\"content\"\]|(?<!\S)content)"
        self.keeps_none = any(re.search(rf" and\s+{content} is (not )?none", tag) for tag in tags)
        uses = re.findall(r"(\+?)\s+[^\s]*?(?:\['arguments'\]|\[\"arguments\"\]|\.arguments)\s*(\|?)", template)
        self.keeps_arguments = bool(uses) and all(sign == "+" and not pipe for sign, pipe in uses)
        self.content_or_thinking = "message.content and message.thinking" in template

    def prepare(self, sent):
        """A message as vLLM hands it to templates."""
        prepared = {"role": sent["role"], "content": sent["content"]}
        if sent["content"] is None and not self.keeps_none:
            prepared["content"] = ""
        for key in ("name", "tool_call_id"):
            if key in sent:
                prepared[key] = sent[key]
        if sent.get("tool_calls"):
            prepared["tool_calls"] = [self.prepare_call(one) for one in sent["tool_calls"]]
        if (reasoning := sent.get("reasoning_content")) is not None:
            prepared.update(reasoning=reasoning, reasoning_content=reasoning, thinking=reasoning)
            if self.content_or_thinking and prepared["content"] and "tool_calls" in prepared:
                del prepared["thinking"]
        return prepared

    def prepare_call(self, one):
        function = dict(one["function"])
        if not self.keeps_arguments:
            function["arguments"] = json.loads(function["arguments"])
        return {**one, "function": function}


def render(template, conversation):
    """The text, or the name of the exception."""
    habits = Habits(template)
    try:
        compiled = _compile_jinja_template(template)
        compiled.environment.is_safe_attribute = lambda *_: True
        return compiled.render(
            messages=[habits.prepare(one) for one in conversation["messages"]], tools=conversation.get("tools"), documents=None,
            add_generation_prompt=conversation.get("add_generation_prompt", True), bos_token="<s>", eos_token="</s>",
            strftime_now=NOW.strftime, **conversation.get("kwargs", {})), None
    except Exception as error:  # pylint: disable=broad-except  (whatever a template does is what it does)
        return None, type(error).__name__


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def summary(template, conversation):
    text, exception = render(template, conversation)
    if text is None:
        return {"exception": exception}
    return {"sha256": digest(text), "lines": "".join(digest(line)[:LINE_DIGITS] for line in text.split("\n"))}


def read(path):
    return path.read_bytes().decode()


def expressions():
    lines = [line for line in read(HERE / "jinja_expressions.txt").splitlines() if line and not line.startswith("#")]
    for template in lines + WHITESPACE:
        text, exception = render(template, CONVERSATIONS["several turns"])
        yield [template, text] if text is not None else [template, None, exception]


def main():
    folder = pathlib.Path(sys.argv[1])
    if len(sys.argv) > 2:
        text, exception = render(read(folder / sys.argv[2]), CONVERSATIONS[sys.argv[3]])
        print(exception if text is None else text, end="")
        return
    templates = {path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                             "renderings": {name: summary(read(path), conversation)
                                            for name, conversation in CONVERSATIONS.items()}}
                 for path in sorted(folder.glob("*.jinja"))}
    goldens = {"source": folder.name, "unix_time": int(NOW.timestamp()), "line_digits": LINE_DIGITS,
               "conversations": CONVERSATIONS, "templates": templates, "expressions": list(expressions())}
    with open(HERE / "jinja_goldens.json", "w", encoding="utf-8") as file:
        json.dump(goldens, file, ensure_ascii=False, indent=0, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
