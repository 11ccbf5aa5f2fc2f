"""Chats outlive reloads, failures and other tabs, and nothing in the browser's store breaks the page."""

import json
import threading

import pytest
from page_driver import Page
from scripted_server import Broken, Refusal
from selenium.webdriver.common.keys import Keys


def roles(asked):
    return [message["role"] for message in asked["messages"]]


def kept_chats(page):
    """What is kept of each chat, by its name."""
    script = """return (async () => {
        await changing;
        const chats = await place;
        return Promise.all((await chats.list()).map(({id}) => chats.get(id)));
    })()"""
    return {chat["id"]: chat for chat in page.run(script)}


def wait_for_titles(page, titles):
    page.wait(lambda: page.run("return [...document.querySelectorAll('#chats .open')].map((each) => each.textContent)") == titles)


def open_chat(page, i):
    page.all("#chats .open")[i].click()
    page.wait(lambda: page.questions() != [])


def test_a_reload_keeps_the_conversation(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One **bold** word"], Refusal(429), ["Three"]]
    page.ask("First?")
    facts = page.text(".facts")
    page.ask("Second?")
    page.reload()
    assert page.questions() == ["First?", "Second?"] and page.text(".turn strong") == "bold"
    assert page.text(".facts") == facts and not page.find("#welcome").is_displayed()
    page.all(".again")[-1].click()
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


def test_a_question_without_an_answer_is_replaced_by_the_edited_one(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [Refusal(500), ["One"]]
    page.ask("Frist?")
    page.find(".edit").click()
    page.find(".editor textarea").clear()
    page.find(".editor textarea").send_keys("First?", Keys.ENTER)
    page.wait(lambda: page.answers() == ["One"])
    page.wait_until_idle()
    assert page.questions() == ["First?"] and page.all(".branch") == []
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == ["First?"]


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
    wait_for_titles(page, ["Second?", "First?"])
    page.reload()
    wait_for_titles(page, ["Second?", "First?"])
    assert page.questions() == []
    open_chat(page, 1)
    assert page.questions() == ["First?"] and page.answers() == ["One"]
    page.ask("More?")
    assert roles(scripted.asked[-1]) == ["user", "assistant", "user"]
    page.find("#new").click()
    wait_for_titles(page, ["First?", "Second?"])
    page.find("#chats .remove").click()
    wait_for_titles(page, ["Second?"])
    page.find("#delete-all").click()
    wait_for_titles(page, ["Second?"])  # asks first
    page.find("#delete-all").click()
    page.wait(lambda: not page.find("#earlier").is_displayed())
    assert kept_chats(page) == {}
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
        wait_for_titles(page, ["Kept?"])
    page.ask("Hello")
    assert page.answers() == ["Fine"] and roles(scripted.asked[-1]) == ["user"]
    page.find("#new").click()
    wait_for_titles(page, ["Hello", "Kept?"])
    open_chat(page, 1)
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Fine"])
    assert page.run("return Object.keys(localStorage)") == []  # all has been taken over


def test_a_chat_that_is_broken_says_so(browser, scripted):
    page = Page(browser, scripted.url)
    page.run("return (async () => (await place).put({id: 'x', time: 1, title: 'Broken?', length: 1, version: 1, writer: 'w', turns: [7]}))()")
    page.run("return (async () => (await place).put({id: 'y', time: 'now', title: {}, length: null}))()")
    page.reload()
    wait_for_titles(page, ["Broken?"])
    page.find("#chats .open").click()
    wait_for_titles(page, ["This chat can’t be read"])


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
    for name in ["localStorage", "sessionStorage", "indexedDB"]:
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
    wait_for_titles(page, ["First?"])
    assert "no longer than this page is open" in page.text("#where-kept")
    open_chat(page, 0)
    assert page.answers() == ["One", "Two"]


def test_a_browser_without_a_database_keeps_a_chat_through_a_reload(browser, scripted):
    browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "Object.defineProperty(window, 'indexedDB', {value: undefined})"})
    page = Page(browser, scripted.url)
    scripted.answers = [["One"]]
    page.ask("First?")
    page.reload()
    assert page.questions() == ["First?"] and page.answers() == ["One"]


def test_two_tabs_do_not_write_over_each_other(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Three"], ["Four"]]
    page.ask("First?")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = Page(browser, scripted.url)
    second = browser.current_window_handle
    wait_for_titles(other, ["First?"])
    open_chat(other, 0)
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
    scripted.answers = [["One"], ["Two"]]
    page.run("""return (async () => {
        const text = 'x'.repeat(MAX_CHARACTERS / 40);
        for (let i = 0; i < 50; ++i) await (await place).put(recordOf(String(i), 'w', {turns: [{role: 'user', content: text, parent: -1}], at: 0}, i + 1));
    })()""")
    page.ask("First?")
    chats = kept_chats(page)
    assert sum(chat["length"] for chat in chats.values()) <= 20_000_000
    assert len(chats) == 40 and "49" in chats and "10" not in chats  # what fits
    # Of a chat that is itself too long, the latest turns are kept.
    page.run("for (let i = 0; i < 5; ++i) for (const role of ['user', 'assistant']) putTurn(chat, {role, content: role + 'x'.repeat(450000)})")
    page.run("answer = async function* () { yield {choices: [{delta: {content: 'Two'}, finish_reason: 'stop'}]}; }")
    page.ask("Second?")
    page.reload()
    assert [question[:4] for question in page.questions()] == ["user", "user", "Seco"]


def test_where_there_is_no_room_no_chat_is_lost(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"]]
    page.ask("First?")
    page.wait(lambda: len(kept_chats(page)) == 1)
    page.run("Database.prototype.put = () => Promise.reject(new DOMException('full', 'QuotaExceededError'))")
    page.find("#new").click()
    page.ask("Second?")
    assert [chat["title"] for chat in kept_chats(page).values()] == ["First?"]
    page.reload()
    assert page.questions() == ["Second?"] and page.answers() == ["Two"]
    assert sorted(chat["title"] for chat in kept_chats(page).values()) == ["First?", "Second?"]


def test_no_more_chats_are_kept_than_a_list_can_show(browser, scripted):
    page = Page(browser, scripted.url)
    page.run("""return (async () => {
        for (let i = 0; i < 210; ++i) await (await place).put(recordOf(String(i), 'w', {turns: [{role: 'user', content: String(i), parent: -1}], at: 0}, i + 1));
    })()""")
    scripted.answers = [["One"]]
    page.ask("First?")
    chats = kept_chats(page)
    assert len(chats) == 200 and "209" in chats and "10" not in chats
