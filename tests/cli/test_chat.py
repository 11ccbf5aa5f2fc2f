"""`pagoda chat`: lines are edited and come back on a terminal, commands change the conversation, and a pipe gets answers alone."""

import fcntl
import json
import os
import pty
import select
import signal
import stat
import subprocess
import termios
import time

import pytest
from pagoda_command import HANGS_AFTER_S, PAGODA, TINY, pagoda, tiny_with_template

UP, RIGHT, HOME, CTRL_D = "\x1b[A", "\x1b[C", "\x01", "\x04"
PROMPT = "\r\n\r\n> "  # with the empty line before it: an edited line is drawn anew with its own


class Terminal:
    """A conversation with short answers."""

    def __init__(self, *flags, model=TINY, most="4", **environment):
        self.terminal, inner = pty.openpty()
        self.before = termios.tcgetattr(inner)
        self.process = subprocess.Popen(
            [PAGODA, "chat", model, "--temperature", "0", "--max-tokens", most, *flags], stdin=inner, stdout=inner, stderr=inner,
            env={**os.environ, "TERM": "xterm", "LANG": "C", **environment}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0))
        self.inner = inner
        self.said = ""
        self.wait_for(PROMPT)

    def wait_for(self, text):
        """Reads until `text` has come since the last wait; returns what came."""
        deadline = time.monotonic() + HANGS_AFTER_S
        while text not in self.said:
            assert time.monotonic() < deadline and self.process.poll() is None, self.said
            self.read()
        come, self.said = self.said.split(text, 1)
        return come

    def read(self):
        if select.select([self.terminal], [], [], 0.1)[0]:
            self.said += os.read(self.terminal, 4096).decode(errors="replace")

    def type(self, keys):
        """Types once keys are taken one by one: libedit prints its prompt just before."""
        deadline = time.monotonic() + HANGS_AFTER_S
        while termios.tcgetattr(self.inner)[3] & termios.ICANON:
            assert time.monotonic() < deadline, self.said
            self.read()
        os.write(self.terminal, keys.encode())

    def end(self):
        deadline = time.monotonic() + HANGS_AFTER_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.said
            self.read()  # a terminal that nobody reads holds back who gives it back
        assert self.process.returncode == 0, self.said
        assert termios.tcgetattr(self.inner) == self.before  # as it was found


@pytest.fixture
def home(tmp_path, tmp_path_factory):
    """A home folder of the test's own, with the cache elsewhere: what appears in it is what the chat keeps."""
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def history_of(tmp_path):
    return tmp_path / ".local/state/pagoda/chat_history"


def lines_of(file):
    """libedit writes spaces and what is not ASCII as octal numbers."""
    return [line.encode().decode("unicode_escape").encode("latin-1").decode() for line in file.read_text().splitlines()[1:]]


def test_lines_are_edited_and_come_back(home, tmp_path):
    terminal = Terminal(**home)
    terminal.type("hllo wörld" + HOME + RIGHT + "e\r")
    terminal.wait_for(PROMPT)
    terminal.type(UP + " again\r")
    terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()
    file = history_of(tmp_path)
    assert lines_of(file) == ["hello wörld", "hello wörld again"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    later = Terminal(**home)
    later.type(UP + UP + "!\r")
    later.wait_for(PROMPT)
    later.type("\r" + CTRL_D)  # an empty line is none
    later.end()
    assert lines_of(file)[-1] == "hello wörld!"


def test_a_history_may_be_kept_nowhere(home, tmp_path):
    terminal = Terminal("--history-file", "", **home)
    terminal.type("hello\r")
    terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()
    assert list(tmp_path.iterdir()) == []


def test_a_history_that_cannot_be_kept_is_told_once(home, tmp_path):
    (tmp_path / "file").write_text("")
    terminal = Terminal("--history-file", str(tmp_path / "file" / "history"), **home)
    terminal.type("hello\r")
    assert "[chat] the history is not kept" in terminal.wait_for(PROMPT)
    terminal.type("hello\r")
    assert "[chat]" not in terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()


def test_ctrl_c_ends_the_conversation_where_nothing_is_answered(home):
    terminal = Terminal(**home)
    terminal.type("hel")
    terminal.wait_for("hel")
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.end()


def test_ctrl_c_ends_an_answer_and_not_the_conversation(home, tmp_path):
    terminal = Terminal("--device", "reference", "--ignore-eos", most="1900", **home)  # plain loops take seconds
    terminal.type("hello\r")
    terminal.wait_for("hello\r\n")
    while not terminal.said:
        terminal.read()
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.wait_for(PROMPT)
    terminal.type(f"/save {tmp_path}/said.json\r")
    terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()
    question, answer = json.loads((tmp_path / "said.json").read_text())["messages"]
    assert question["content"] == "hello" and 0 < len(answer["content"]) < 1900  # each token has more than a character


def test_answers_are_sampled_as_flags_say(home):
    asked = ("--max-tokens", 6, "--history-file", "")
    greedy, again, other = (pagoda("chat", TINY, *asked, *flags, stdin="hello\n", **home).stdout
                            for flags in (("--temperature", 0), ("--temperature", 0), ("--temperature", 5, "--seed", 3)))
    assert greedy == again != other
    assert "yes" in pagoda("chat", TINY, *asked, "--choice", "yes", stdin="hello\n", **home).stdout
    assert "max_tokens" in pagoda("chat", TINY, "--max-tokens", 0, stdin="hello\n", code=2, **home).stderr


def test_lines_from_a_pipe_get_answers_alone(home, tmp_path):
    yes = ("--choice", "yes", "--max-tokens", 6)
    done = pagoda("chat", TINY, *yes, stdin='hello\n\n"""\n/two\nlines\n"""\n/help\nhello again', **home)
    assert done.stdout == "yes\n\nyes\n\nyes\n"  # no prompt, no greeting, and nothing of a command
    assert "/save FILE" in done.stderr
    assert list(tmp_path.iterdir()) == []


# A template that refuses hello, but behind this system message alone.
ONE_QUESTION = """{%- for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if messages[-1].content == 'hello' and (messages | length != 2 or messages[0].content != 'be kind') %}
{{- raise_exception('got ' ~ messages | length) }}{% endif %}{% if add_generation_prompt %}assistant: {% endif %}"""
YES = ("--choice", "yes", "--max-tokens", "6", "--history-file", "")


@pytest.fixture(scope="module")
def one_question(tmp_path_factory):
    return tiny_with_template(tmp_path_factory.mktemp("models") / "one", ONE_QUESTION)


def test_commands_change_the_conversation(home, one_question):
    said = pagoda("chat", one_question, *YES, stdin="/system be kind\nhello\n/retry\n/clear\nhello\n/system\n", **home)
    assert said.stdout == "yes\n\nyes\n\nyes\n" and "The system message: be kind" in said.stderr
    twice = pagoda("chat", one_question, *YES, "--system", "be kind", stdin="hello\nhello\n", code=2, **home)
    assert twice.stdout == "yes\n" and "got 4" in twice.stderr


def test_a_conversation_is_saved_as_a_request(home, tmp_path):
    file = tmp_path / "said.json"
    pagoda("chat", TINY, *YES, stdin=f'/system be kind\n"""a\nb"""\n/save {file}\n', **home)
    assert json.loads(file.read_text()) == {"model": TINY.name, "messages": [
        {"role": "system", "content": "be kind"}, {"role": "user", "content": "a\nb"}, {"role": "assistant", "content": "yes"}]}
    before = file.read_bytes()
    assert "expected a name that is free" in pagoda("chat", TINY, *YES, stdin=f"hello\n/save {file}\n", code=2, **home).stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("typed, told", [
    ("/retyr\n", "/retyr: no such command, perhaps /retry"), ("/usr/bin is what?\n", "/usr/bin: no such command; /help"),
    ("/retry\n", "/retry: expected a message before it"), ("/save\n", "/save: expected a file's name"),
    ('"""\nhello\n', 'expected a line that ends with """')])
def test_what_is_no_message_is_told_and_not_sent(home, typed, told):
    done = pagoda("chat", TINY, *YES, stdin=typed, code=2, **home)
    assert told in done.stderr and done.stdout == ""


def test_a_model_is_told_and_another_one_is_a_conversation_of_its_own(home):
    told = pagoda("chat", TINY, *YES, stdin=f"/model\n/model {TINY}\n", **home)
    first, second = told.stderr.splitlines()
    assert first == "tiny-llama on cpu answers, with a context of 2048 tokens."
    assert second.startswith(first) and f"`pagoda chat {TINY}`" in second and told.stdout == ""
    assert "`pagoda pull hf:no/such`" in pagoda("chat", TINY, *YES, stdin="/model hf:no/such\n", code=1, **home).stderr


def test_a_terminal_goes_on_after_what_could_not_be_done(home, one_question):
    terminal = Terminal("--choice", "yes", model=one_question, most="6", **home)
    for typed, told in (("/nothing", "no such command"), ("hello", "got 1"), ("/system be kind", "be kind"), ("hello", "yes")):
        terminal.type(typed + "\r")
        assert told in terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()


def test_ctrl_c_drops_a_message_of_several_lines(home, one_question):
    terminal = Terminal("--choice", "yes", "--system", "be kind", model=one_question, most="6", **home)
    terminal.type('"""\r')
    terminal.wait_for("... ")
    terminal.type("dropped\r")
    terminal.wait_for("... ")
    os.killpg(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("\r\n> ")
    terminal.type('"""\r')
    terminal.wait_for("... ")
    terminal.type('hello"""\r')
    assert "yes" in terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()


# Thoughts stand between marks here, and a thought that is put back into the history is refused.
THINKING = """{%- for m in messages %}{% if '<think>' in m.content or '</think>' in m.content or m.reasoning_content %}{{ raise_exception('a thought in the history') }}
{%- endif %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""
A_THOUGHT = ("--regex", "<think>hm</think>yes")


@pytest.fixture(scope="module")
def thinking(tmp_path_factory):
    return tiny_with_template(tmp_path_factory.mktemp("models") / "thinking", THINKING)


def test_a_thought_is_dim_and_stays_out_of_the_history(home, thinking):
    terminal = Terminal(*A_THOUGHT, model=thinking, most="40", **home)
    for _ in range(2):
        terminal.type("hello\r")
        shown = terminal.wait_for(PROMPT)
        thought, answer = shown.rsplit("\x1b[0m", 1)
        assert thought.replace("\x1b[0m", "").replace("\x1b[2m", "").endswith("hm") and "\x1b[2m" in thought
        assert "<think>" not in shown and answer.strip() == "yes"
    terminal.type(CTRL_D)
    terminal.end()


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_a_thought_stands_between_its_marks_where_no_styles_are(home, thinking, environment):
    if not environment:
        shown = pagoda("chat", thinking, *A_THOUGHT, "--max-tokens", 40, stdin="hello\nhello\n", **home).stdout
        assert shown.count("<think>\nhm\n</think>\n\nyes\n") == 2
        return
    terminal = Terminal(*A_THOUGHT, model=thinking, most="40", **home, **environment)
    terminal.type("hello\r")
    assert "<think>\r\nhm\r\n</think>\r\n\r\nyes" in terminal.wait_for(PROMPT)
    terminal.type(CTRL_D)
    terminal.end()


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}}]
# A template that refuses 3 unless it is the result of a call.
CALLING = """{% for t in tools or [] %}{{ t.function.name }} by <tool_call>{"name": ...}</tool_call>
{% endfor %}{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %} calls {{ c.function.name }} {{ c.function.arguments | tojson }}
{%- endfor %}
{% endfor %}{% if messages[-1].content == '3' and (messages[-1].role != 'tool' or not messages[-2].tool_calls) %}
{{- raise_exception('no result') }}{% endif %}{% if add_generation_prompt %}assistant: {% endif %}"""
A_CALL = '<tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call>'


def test_what_is_said_behind_a_call_is_its_result(home, tmp_path):
    model, file = tiny_with_template(tmp_path / "calling", CALLING), tmp_path / "said.json"
    talk = ("chat", model, "--history-file", "", "--choice", f"Look: {A_CALL}", "--max-tokens", 200)
    said = pagoda(*talk, "--tools", json.dumps(TOOLS), stdin=f"hello\n3\n/save {file}\n", **home)
    assert said.stdout == "\n".join(['Look:\n{"name":"add","arguments":{"x":1}}\n'] * 2)
    assert said.stderr.splitlines()[0] == "[add was called: its result is what you say next]"
    saved = json.loads(file.read_text())
    assert [message["role"] for message in saved["messages"]] == ["user", "assistant", "tool", "assistant"] and saved["tools"] == TOOLS
    assert "no result" in pagoda(*talk, stdin="hello\n3\n", code=2, **home).stderr
