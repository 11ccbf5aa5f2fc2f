"""Chats outlive reloads, failures and other tabs, and nothing in the browser's store breaks the page."""

import json
import threading

import pytest
from page_driver import Page
from scripted_server import Broken, Refusal


def roles(asked):
    return [message["role"] for message in asked["messages"]]


def kept_chats(page):
    return {key: json.loads(value) for key, value in page.run("return {...localStorage}").items() if key.startswith("pagoda.chat.")}


def test_a_reload_keeps_the_conversation(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One **bold** word"], Refusal(429), ["Three"]]
    page.ask("First?")
    facts = page.text(".facts")
    page.ask("Second?")
    page.reload()
    assert page.questions() == ["First?", "Second?"] and page.text(".turn strong") == "bold"
    assert page.text(".facts") == facts and not page.find("#welcome").is_displayed()
    page.find(".again").click()
    page.wait(lambda: page.answers()[-1] == "Three")
    assert scripted.asked[-1]["messages"] == [
        {"role": "user", "content": "First?"}, {"role": "assistant", "content": "One **bold** word"},
        {"role": "user", "content": "Second?"}]


def test_a_reload_keeps_what_has_come_of_an_answer(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["So far", threading.Event()], ["All of it"]]
    page.say("Question")
    page.wait(lambda: page.answers() == ["So far"])
    page.reload()
    assert page.answers() == ["So far"] and "interrupted" in page.text(".facts")
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["All of it"])
    assert roles(scripted.asked[-1]) == ["user"]


@pytest.mark.parametrize("failure", [Refusal(429), Refusal(500), [Broken], []], ids=["busy", "broken", "cut off", "empty"])
def test_a_question_without_an_answer_does_not_block_the_chat(browser, scripted, failure):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], failure, failure, ["Four"], ["Five"]]
    for question in ["First?", "Second?", "Third?", "Fourth?"]:
        page.ask(question)
    assert page.questions() == ["First?", "Second?", "Third?", "Fourth?"] and len(page.all(".left-out")) == 2
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == ["First?", "One", "Fourth?"]
    page.reload()
    assert page.questions() == ["First?", "Second?", "Third?", "Fourth?"] and len(page.all(".left-out")) == 2
    page.ask("Fifth?")
    for asked in scripted.asked:
        assert roles(asked) == ["user", "assistant"] * (len(roles(asked)) // 2) + ["user"]
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == ["First?", "One", "Fourth?", "Four", "Fifth?"]


def test_a_question_without_an_answer_can_be_taken_back(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [Refusal(500), ["One"], [threading.Event()], ["Two"]]
    page.ask("Frist?")
    page.find("#input").send_keys("and more")
    page.find(".edit").click()
    assert page.questions() == [] and page.find("#welcome").is_displayed() and kept_chats(page) == {}
    assert page.find("#input").get_property("value") == "Frist?\nand more"
    page.find("#input").clear()
    page.ask("First?")
    page.say("Stopped before its first word")
    page.wait(lambda: page.find("#stop").is_displayed() and len(scripted.asked) == 3)
    page.find("#stop").click()
    page.wait_until_idle()
    page.find(".edit").click()
    assert page.questions() == ["First?"]
    page.find("#input").clear()
    page.ask("Second?")
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == ["First?", "One", "Second?"]


def test_a_chat_past_the_context_goes_on_in_a_new_one(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], Refusal(400, "too long", "context_length_exceeded"), ["Two"]]
    page.ask("First?")
    page.ask("Second?")
    assert "longer than the model can read" in page.text(".trouble")
    page.find(".trouble .link").click()
    assert page.questions() == [] and page.find("#input").get_property("value") == "Second?"
    page.find("#send").click()
    page.wait(lambda: page.answers() == ["Two"])
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == ["Second?"]


def test_earlier_chats_are_opened_and_deleted(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Three"]]
    for question in ["First?", "Second?"]:
        page.ask(question)
        page.find("#new").click()
    titles = lambda: [each.text for each in page.all("#chats .open")]  # noqa: E731
    assert titles() == ["Second?", "First?"]
    page.reload()
    assert page.questions() == [] and titles() == ["Second?", "First?"]
    page.all("#chats .open")[1].click()
    assert page.questions() == ["First?"] and page.answers() == ["One"]
    page.ask("More?")
    assert roles(scripted.asked[-1]) == ["user", "assistant", "user"]
    page.find("#new").click()
    assert titles() == ["First?", "Second?"]
    page.all("#chats .link:not(.open)")[0].click()
    assert titles() == ["Second?"]
    page.find("#delete-all").click()
    assert titles() == ["Second?"]  # asks first
    page.find("#delete-all").click()
    assert not page.find("#earlier").is_displayed() and kept_chats(page) == {}
    page.reload()
    assert page.find("#welcome").is_displayed() and not page.find("#earlier").is_displayed()


GOOD = {"version": 1, "time": 1, "writer": "w", "turns": [{"role": "user", "content": "Kept?"}]}
BROKEN_CHATS = [
    "", "{", "null", "1", '"text"', "[]", "{}", "[[[[", json.dumps({**GOOD, "version": 2}), json.dumps({**GOOD, "turns": {}}),
    json.dumps({**GOOD, "turns": []}), json.dumps({**GOOD, "turns": [None]}), json.dumps({**GOOD, "turns": [{"role": "system", "content": "x"}]}),
    json.dumps({**GOOD, "turns": [{"role": "user", "content": 1}]}), json.dumps({**GOOD, "turns": [{"role": "assistant", "content": "x"}]}),
    json.dumps({**GOOD, "time": "now"}), json.dumps({**GOOD, "writer": {}}),
]


def test_a_broken_store_breaks_nothing(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["Fine"], ["Fine"]]
    for i, text in enumerate(BROKEN_CHATS):
        page.run("localStorage.setItem(arguments[0], arguments[1])", f"pagoda.chat.{i}", text)
    page.run("localStorage.setItem('pagoda.chat.good', arguments[0])", json.dumps(GOOD))
    for i in range(len(BROKEN_CHATS)):
        page.run("sessionStorage.setItem('pagoda.chat', arguments[0])", str(i))
        page.reload()
        assert [each.text for each in page.all("#chats .open")] == ["Kept?"], BROKEN_CHATS[i]
    page.ask("Hello")
    assert page.answers() == ["Fine"] and roles(scripted.asked[-1]) == ["user"]
    page.find("#new").click()
    page.all("#chats .open")[1].click()
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Fine"])
    page.find("#new").click()
    page.find("#delete-all").click()
    page.find("#delete-all").click()
    assert page.run("return Object.keys(localStorage)") == []


@pytest.mark.parametrize("text", ["", "{", "null", "7", '"text"', '["a"]', '{"model": "other", "messages": [], "stream": false}',
                                  '{"temperature": "hot", "top_p": 7, "seed": null, "system": 3}'])
def test_settings_of_others_are_not_sent(browser, scripted, text):
    page = Page(browser, scripted.url)
    page.run("localStorage.setItem('pagoda.settings', arguments[0])", text)
    page.reload()
    scripted.answers = [["Fine"]]
    page.ask("Hello")
    assert page.answers() == ["Fine"]
    assert set(scripted.asked[0]) == {"messages", "stream", "stream_options"} and scripted.asked[0]["stream"] is True
    page.find("#open-settings").click()
    assert page.find("#set-temperature").get_property("value") == ""


@pytest.mark.parametrize("store", ["get() { throw new DOMException('denied', 'SecurityError'); }", "value: null",
                                   "value: {getItem: () => null, setItem() { throw new DOMException('full', 'QuotaExceededError'); }}"],
                         ids=["forbidden", "none", "full"])
def test_a_browser_that_keeps_nothing_can_chat(browser, scripted, store):
    for name in ["localStorage", "sessionStorage"]:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": f"Object.defineProperty(window, '{name}', {{{store}}})"})
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"]]
    page.ask("First?")
    page.ask("Second?")
    assert page.answers() == ["One", "Two"] and roles(scripted.asked[-1]) == ["user", "assistant", "user"]
    page.find("#open-settings").click()
    page.find("#set-temperature").send_keys("0.5")
    page.find("#settings-form .main").click()
    page.find("#new").click()
    assert page.find("#welcome").is_displayed()


def test_two_tabs_do_not_write_over_each_other(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Three"], ["Four"]]
    page.ask("First?")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = Page(browser, scripted.url)
    second = browser.current_window_handle
    other.find("#chats .open").click()
    other.ask("In the other tab?")
    browser.switch_to.window(first)
    page.ask("In this tab?")
    browser.switch_to.window(second)
    other.ask("In the other tab again?")
    expected = {second: ["First?", "In the other tab?", "In the other tab again?"], first: ["First?", "In this tab?"]}
    for handle, questions in expected.items():
        browser.switch_to.window(handle)
        page.reload()
        assert page.questions() == questions
    assert len(kept_chats(page)) == 2


def test_the_store_is_bounded_and_keeps_the_latest(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Three"]]
    for i in range(40):
        record = {**GOOD, "time": i + 1, "turns": [{"role": "user", "content": f"{i} " + "x" * 60000}]}
        page.run("localStorage.setItem(arguments[0], arguments[1])", f"pagoda.chat.{i}", json.dumps(record))
    page.ask("First?")
    chats = kept_chats(page)
    assert sum(len(json.dumps(chat)) for chat in chats.values()) <= 1_500_000
    assert "pagoda.chat.39" in chats and "pagoda.chat.0" not in chats
    assert len(chats) == 25  # what fits
    # Another page of this address takes all there is: the oldest chats make room for the latest.
    page.run("try { for (let i = 0; ; ++i) localStorage.setItem('other.' + i, 'x'.repeat(20000)); } catch { /* full */ }")
    page.ask("x" * 3000)
    page.reload()
    assert page.questions() == ["First?", "x" * 3000]
    # Of a chat that is itself too long, the latest turns are kept.
    page.run("localStorage.clear()")
    page.run("chat.turns.unshift(...Array.from({length: 10}, (_, i) => [{role: 'user', content: 'x'.repeat(90000)},"
             " {role: 'assistant', content: 'y'}]).flat())")
    page.ask("Third?")
    page.reload()
    assert page.questions()[-2:] == ["x" * 3000, "Third?"] and len(page.questions()) == 7
