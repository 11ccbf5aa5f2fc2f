"""The page at / in a real browser: a conversation, stopping, settings, errors, screens from a phone's to a desk's."""

import threading

import pytest
from fake_server import FakeServer
from page_driver import Page, problems_of
from scripted_server import Broken, Refusal
from selenium.webdriver.common.keys import Keys


@pytest.fixture(scope="module")
def slow_server():
    fake = FakeServer(token_s=0.01)
    yield fake
    fake.close()


def test_streams_an_answer_with_its_figures(browser, slow_server):
    page = Page(browser, slow_server.url)
    page.picture("welcome")
    page.say("Tell me of pagodas")
    page.wait(lambda: page.answers() and page.answers()[0])
    partial = page.answers()[0]
    page.wait_until_idle()
    assert len(partial) < len(page.answers()[0])
    assert page.text(".turn.user .text") == "Tell me of pagodas"
    assert page.text(".turn.assistant strong") == "tiered tower"
    assert [item.text for item in page.all(".turn.assistant li")] == [
        "It began as a stupa in India.", "Many are built of wood, brick or stone."]
    assert 'print("<eave>", tier)' in page.text(".turn.assistant pre code")
    assert page.answers()[0].endswith("再见 👋")
    facts = page.text(".facts")
    assert "tokens/s" in facts and "first token" in facts and "tokens" in facts
    page.picture("answer-light")
    page.color_scheme("dark")
    page.picture("answer-dark")


def test_sends_the_whole_conversation(browser, server):
    page = Page(browser, server.url)
    for message in ["say one", "say two"]:
        page.say(message)
        page.wait_until_idle()
    assert page.answers() == ["one", "two"]
    sent = browser.execute_script("return chat.turns")
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "say one"), ("assistant", "one"), ("user", "say two"), ("assistant", "two")]
    page.find("#new").click()
    assert page.answers() == []
    assert page.find("#welcome").is_displayed()


def test_thoughts_are_folded_and_no_part_of_the_conversation(browser):
    fake = FakeServer(thinks=True)
    try:
        page = Page(browser, fake.url)
        page.ask("say <think>First I think.</think> Then I answer.")
        assert page.answers() == ["Then I answer."]
        assert page.text(".thought summary") == "Thoughts" and not page.find(".thought .words").is_displayed()
        page.find(".thought summary").click()
        assert page.text(".thought .words") == "First I think."
        assert page.run("return chat.turns.map((turn) => turn.content)")[1] == "Then I answer."
    finally:
        fake.close()


def call(index, **function):
    return {"tool_calls": [{"index": index, "function": function}]}


def test_calls_of_tools_are_folded(browser, scripted):
    page = Page(browser, scripted.url)
    name = "look_up_" + "word" * 18
    scripted.answers = [["I look.", call(0, name=name, arguments=""), call(0, arguments='{"city": "<b>'), call(1, name="other", arguments="{}"),
                         call(0, arguments='Nara</b>"}')], [call(0, name="one", arguments=None)]]
    page.screen(320)
    page.ask("Weather?")
    assert page.answers() == ["I look."] and [each.text for each in page.all(".thought summary")] == ["Call of " + name, "Call of other"]
    assert not page.find(".thought .words").is_displayed()
    page.find(".thought summary").click()
    assert page.text(".thought .words") == '{"city": "<b>Nara</b>"}'
    assert page.run("return document.querySelector('main').scrollWidth") <= 320
    page.picture("calls-320")
    page.ask("And?")
    assert page.all(".thought summary")[2].text == "Call of one" and "this page runs no tools" in page.all(".facts")[1].text


def test_shift_enter_starts_a_line(browser, server):
    page = Page(browser, server.url)
    page.find("#input").send_keys("first", Keys.SHIFT, Keys.ENTER)
    assert page.all(".turn") == []
    assert page.find("#input").get_property("value") == "first\n"


@pytest.mark.parametrize("way", ["button", "escape"])
def test_stops_a_long_answer(browser, slow_server, way):
    page = Page(browser, slow_server.url)
    cancelled = slow_server.num_cancelled()
    page.say("count 10000")
    page.wait(lambda: page.answers() and "12" in page.answers()[0])
    if way == "button":
        page.find("#stop").click()
    else:
        page.find("#input").send_keys(Keys.ESCAPE)
    page.wait_until_idle()
    assert "stopped" in page.text(".facts") and "tokens/s" in page.text(".facts")
    page.wait(lambda: slow_server.num_cancelled() == cancelled + 1)
    page.say("say still here")
    page.wait_until_idle()
    assert page.answers()[1] == "still here"


def test_text_of_the_model_is_never_html(browser, server):
    page = Page(browser, server.url)
    page.say("say <img src=x onerror=document.title='broken'> **<b>bold</b>** [link](javascript:alert(1)) `<i>`")
    page.wait_until_idle()
    assert "<img src=x" in page.answers()[0] and "<b>bold</b>" in page.answers()[0]
    assert page.all(".turn img, .turn b, .turn i, .turn a") == []
    assert browser.title == "Pagoda"


def test_shows_failures_kindly(browser, server):
    page = Page(browser, server.url)
    page.say("fail the roof leaks")
    page.wait_until_idle()
    assert page.answers() == ["So far"]
    assert page.text(".trouble") == "the roof leaks"
    page.say("say " + "long " * 500)
    page.wait_until_idle()
    assert "longer than the model can read" in page.all(".trouble")[1].text
    page.picture("trouble")


def test_asks_for_the_api_key(browser):
    fake = FakeServer(api_key="secret")
    try:
        page = Page(browser, fake.url, model="")
        page.say("say hello")
        page.wait(lambda: page.all(".trouble .link"))
        assert "API key" in page.text(".trouble")
        page.find(".trouble .link").click()
        page.find("#api-key").send_keys("secret")
        page.find("#settings-form .main").click()
        page.wait(lambda: page.text("#model") == "fake-model")
        page.find(".again").click()
        page.wait(lambda: page.answers() == ["hello"])
    finally:
        fake.close()


def test_fits_a_phone(browser, slow_server):
    page = Page(browser, slow_server.url)
    page.screen(360)
    page.say("Tell me of pagodas")
    page.wait(lambda: page.answers() and "python" in page.all(".turn.assistant")[0].text)
    page.picture("phone-streaming")
    page.wait_until_idle()
    overflow = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.querySelector('main').scrollWidth]")
    assert max(overflow) <= 360
    for selector in [".edit", "#send", "#new", "#open-settings", "#open-export"]:
        size = page.find(selector).size
        assert size["width"] >= 44 and size["height"] >= 44, selector
    page.picture("phone")
    page.color_scheme("dark")
    page.find("#open-settings").click()
    page.picture("phone-settings")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360


LONG_NAME = "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF/smollm2-1.7b-instruct-q4_k_m-with-an-importance-matrix.gguf"
WIDE = """A table, code in a list and words without an end:

| Country | Name | Material | Oldest that stands | Remarks |
|:--|:--|:--|--:|:--|
| China | pagoda | brick, wood | 523 | Songyue, of twelve sides and fifteen eaves close above one another |

1. Install it:
   ```a-language-of-a-long-name-that-fits-nowhere-at-all-but-is-there-nevertheless
   sudo apt install a-package-with-a-very-long-name another-package --with --many --flags --and --more
   ```
   - [a link](https://example.org/%s) in a list in a list
> > a quote in a quote %s

`%s` and ### %s
""" % (("word" * 60,) * 4)
CUT_OFF = """
const clips = (element) => element.matches('pre, .table, .formula') || getComputedStyle(element).textOverflow === 'ellipsis';
const isClipped = (element) => !!element.parentElement && (clips(element.parentElement) || isClipped(element.parentElement));
const root = document.querySelector('dialog[open]') ?? document.body;
return [...root.querySelectorAll('*')].filter((element) => {
  const {left, right, width} = element.getBoundingClientRect();
  return width && element.checkVisibility({visibilityProperty: true}) && !isClipped(element) && !element.matches('.sr')
      && (left < -0.5 || right > innerWidth + 0.5);
}).map((element) => `${element.tagName}#${element.id}.${element.className} ${element.getBoundingClientRect().right}`);
"""


UNNAMED = """
return [...document.querySelectorAll('button, input, textarea, select, summary')].filter((element) =>
  element.checkVisibility() && !element.ariaLabel && !element.labels?.length && !element.textContent.trim()).map((element) => element.outerHTML);
"""


@pytest.mark.parametrize("width", [320, 375, 430, 1280])
def test_nothing_is_cut_off(browser, scripted, width):
    scripted.model = LONG_NAME
    page = Page(browser, scripted.url, LONG_NAME)
    page.screen(width)

    def check(what):
        assert page.run(CUT_OFF) == [], what
        assert page.run(UNNAMED) == [], what
        assert page.run("return document.querySelector('main').scrollWidth") <= width, what
        page.picture(f"{what}-{width}")

    check("welcome")
    scripted.answers = [[WIDE], Refusal(429), Refusal(400, "too long", "context_length_exceeded"), Refusal(500, "word" * 200)]
    page.ask("word" * 60)
    check("answer")
    page.find(".edit").click()
    check("editor")
    scripted.answers.insert(0, [WIDE])
    page.find(".editor textarea").send_keys("word", Keys.ENTER)
    page.wait(lambda: page.all(".branch"))
    page.wait_until_idle()
    check("branches")
    for question in ["busy?", "too long?", "broken?"]:
        page.ask(question)
    check("failures")
    page.find("#open-export").click()
    check("export")
    page.find("#export .tool").click()
    page.find("#new").click()
    page.wait(lambda: page.find("#earlier").is_displayed())
    check("earlier chats")
    page.find("#open-settings").click()
    check("settings")


def test_the_theme_is_the_systems_or_as_chosen(browser, scripted):
    page = Page(browser, scripted.url)
    light, dark = "rgb(250, 247, 242)", "rgb(24, 22, 20)"
    shown = lambda: page.run("return getComputedStyle(document.body).backgroundColor")  # noqa: E731
    for choice, seen in [("system", [light, dark]), ("dark", [dark, dark]), ("light", [light, light])]:
        page.find("#open-settings").click()
        page.find(f"#theme option[value='{choice}']").click()
        page.find("#settings-form .main").click()
        for _ in range(2):
            for scheme, color in zip(["light", "dark"], seen, strict=True):
                page.color_scheme(scheme)
                assert shown() == color, (choice, scheme)
            page.reload()
    page.run("localStorage.setItem('pagoda.theme', '{')")
    page.reload()
    assert page.find("#theme").get_property("value") == "system"


def test_no_text_can_become_html(browser, server):
    page = Page(browser, server.url)
    for way in ["innerHTML = '<b>x</b>'", "outerHTML = '<b>x</b>'", "insertAdjacentHTML('beforeend', '<b>x</b>')"]:
        refused = page.run(f"try {{ document.querySelector('main').{way}; }} catch (error) {{ return error.name; }}")
        assert refused == "TypeError", way
    assert len(problems_of(browser)) == 3  # the browser's own words about these


def test_a_word_that_is_being_composed_is_not_sent(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["Hello"]]
    page.find("#input").send_keys("ni hao")
    enter = "$('input').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, cancelable: true, %s}))"
    page.run(enter % "isComposing: true")
    page.run(enter % "keyCode: 229")  # Safari's
    assert page.questions() == []
    page.run(enter % "keyCode: 13")
    page.wait(lambda: page.answers() == ["Hello"])


def test_the_end_is_in_view_until_the_reader_scrolls_up(browser, scripted):
    page = Page(browser, scripted.url)
    more = [threading.Event(), threading.Event()]
    lines = "a line\n\n" * 100
    scripted.answers = [[lines, more[0], lines, more[1], lines + "the end"]]
    distance = "const {scrollTop, scrollHeight, clientHeight} = $('scroll'); return scrollHeight - scrollTop - clientHeight"
    page.say("Much")
    page.wait(lambda: len(page.all(".turn.assistant p")) == 100 and page.run(distance) < 8)
    page.run("$('scroll').scrollTop -= 40")
    page.wait(lambda: page.find("#latest").is_displayed())
    there = page.run("return $('scroll').scrollTop")
    more[0].set()
    page.wait(lambda: len(page.all(".turn.assistant p")) == 200)
    assert page.run("return $('scroll').scrollTop") == there
    page.find("#latest").click()
    more[1].set()
    page.wait_until_idle()
    page.wait(lambda: page.run(distance) < 8 and not page.find("#latest").is_displayed())


def test_the_end_of_an_answer_takes_no_focus_away(browser, scripted):
    page = Page(browser, scripted.url)
    more = threading.Event()
    scripted.answers = [["```\ncode\n```\n\nand", more, " text"]]
    page.say("Code")
    page.wait(lambda: page.answers() and page.answers()[0].endswith("and"))
    page.run("document.querySelector('pre').focus()")
    more.set()
    page.wait_until_idle()
    assert page.run("return document.activeElement.tagName") == "PRE"
    scripted.answers = [["text"]]
    page.ask("and text?")
    assert page.run("return document.activeElement.id") == "input"


@pytest.mark.parametrize("answer, words", [
    (Refusal(429), "The server is busy. Please try again"),
    (Refusal(503, "it is stopping"), "can’t answer now. it is stopping"),
    (Refusal(400, "top_k: expected less", "bad"), "top_k: expected less"),
    (["So far", Broken], "broke off"),
    ([Broken], "broke off"),
])
def test_what_went_wrong_is_said_and_can_be_tried_again(browser, scripted, answer, words):
    page = Page(browser, scripted.url)
    scripted.answers = [answer, ["All is well"]]
    page.ask("Hello")
    assert words in page.text(".trouble")
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["All is well"])
    page.wait_until_idle()
    assert page.all(".trouble") == []
    assert [each["messages"] for each in scripted.asked] == [[{"role": "user", "content": "Hello"}]] * 2


def test_says_at_once_that_a_key_is_wanted(browser):
    fake = FakeServer(api_key="secret")
    try:
        page = Page(browser, fake.url, model="")
        page.wait(lambda: page.find("#key-notice").is_displayed())
        page.find("#key-notice button").click()
        page.find("#api-key").send_keys("wrong – really")
        page.find("#settings-form .main").click()
        page.ask("say hello")
        assert "does not accept this API key" in page.text(".trouble")
        page.find(".trouble .link").click()
        page.find("#api-key").clear()
        page.find("#api-key").send_keys("secret")
        page.find("#settings-form .main").click()
        page.wait(lambda: page.text("#model") == "fake-model")
        page.find(".again").click()
        page.wait(lambda: page.answers() == ["hello"])
        page.find("#new").click()
        assert not page.find("#key-notice").is_displayed()
    finally:
        fake.close()


def test_waits_for_a_model_that_is_being_loaded(browser, scripted):
    scripted.models_status = 503
    page = Page(browser, scripted.url, model="")
    page.wait(lambda: page.text("#model") == "not ready yet")
    scripted.models_status = 200
    page.wait(lambda: page.text("#model") == "fake-model")


@pytest.mark.parametrize("has_clipboard", [True, False], ids=["secure", "over plain HTTP"])
def test_code_is_copied(browser, scripted, has_clipboard):
    page = Page(browser, scripted.url)
    if not has_clipboard:
        page.run("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    scripted.answers = [["```make\nall: a\n\techo\n```"]]
    page.ask("A makefile")
    page.find(".code .link").click()
    page.wait(lambda: page.text(".code .link") == "Copied")
    page.find("#input").send_keys(Keys.CONTROL, "v")
    assert page.find("#input").get_property("value") == "all: a\n\techo"


SELECT = """
const node = document.createTreeWalker($('log').lastChild.querySelector('.text'), NodeFilter.SHOW_TEXT);
let at = node.nextNode();
while (!at.data.includes('chosen')) at = node.nextNode();
const [start, end] = [at.data.indexOf('chosen'), at.data.indexOf('chosen') + 6];
getSelection().setBaseAndExtent(at, arguments[0] ? end : start, at, arguments[0] ? start : end);
"""


def test_what_is_selected_stays_so_while_the_answer_grows(browser, scripted):
    page = Page(browser, scripted.url)
    for is_backward in [False, True]:
        more = [threading.Event(), threading.Event()]
        scripted.answers = [["Some **chosen wor", more[0], "ds** go on", more[1], "\n\n- and *on*\n\nto the end"]]
        page.find("#input").click()  # selects nothing else
        page.say("Much")
        page.wait(lambda: page.answers() and page.answers()[-1] == "Some chosen wor")
        page.run(SELECT, is_backward)
        for event, end in zip(more, ["go on", "to the end"], strict=True):
            event.set()
            page.wait(lambda: page.answers()[-1].endswith(end))  # noqa: B023
        page.wait_until_idle()
        assert page.run("const it = getSelection(); return [it.toString(), it.anchorOffset > it.focusOffset]") == ["chosen", is_backward]
