"""`pagoda run --chat --tools`: the prompt tells of tools, and calls are told apart from what else an answer says."""

import json

import pytest
from pagoda_command import TINY, pagoda, tiny_with_template


def run_json(*args):
    return [json.loads(line) for line in pagoda("run", "--json", *args).stdout.splitlines()]


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}]
CALLING = """{% for t in tools or [] %}{{ t.function.name }} by <tool_call>{"name": ...}</tool_call>
{% endfor %}{% for m in messages %}{{ m.content }}{% endfor %}"""
A_CALL = '<tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call>'


@pytest.fixture
def tools(tmp_path):
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return (tiny_with_template(tmp_path / "calling", CALLING), "--temperature", 0, "--chat", "hello", "--choice", f"Look: {A_CALL}",
            "--max-tokens", 200, "--tools", str(tmp_path / "tools.json"))


def test_calls_of_tools_are_told_apart(tools):
    (with_tools,), (without,) = run_json(*tools), run_json(*tools[:-2])
    assert len(with_tools["prompt_token_ids"]) > len(without["prompt_token_ids"])
    assert with_tools["text"] == without["text"] == f"Look: {A_CALL}"
    function = {"name": "add", "arguments": '{"x": 1}'}
    assert with_tools["message"] == {"role": "assistant", "content": "Look:", "tool_calls": [{"type": "function", "function": function}]}
    assert without["message"] == {"role": "assistant", "content": f"Look: {A_CALL}"}
    assert pagoda("run", *tools).stdout == 'Look:\n{"name":"add","arguments":{"x":1}}\n'


def test_tools_may_be_given_in_place(tools):
    (named,), (given,) = run_json(*tools), run_json(*tools[:-1], json.dumps(TOOLS))
    assert named["prompt_token_ids"] == given["prompt_token_ids"]


@pytest.mark.parametrize(("wrong", "told"), [("no_such.json", "a file with them"), ("[7]", "tools[0]"), ("[", "tools in JSON")])
def test_tools_that_are_none(wrong, told):
    assert told in pagoda("run", TINY, "--chat", "hello", "--tools", wrong, code=2).stderr


def test_tools_need_a_conversation():
    assert "--chat" in pagoda("run", TINY, "hello", "--tools", json.dumps(TOOLS), code=2).stderr
