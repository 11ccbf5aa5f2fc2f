"""The list of chats: dates, a search, and names that can be changed by keyboard alone. Answers go on in chats that are not
shown, and what is being written stays with its chat."""

import threading

from page_driver import Page
from selenium.webdriver.common.keys import Keys

PUT = """return (async () => {
  const before = (days) => new Date().setDate(new Date().getDate() - days);
  const times = [Date.now(), before(1), Date.UTC(2020, 2, 12, 12), 1e300];
  for (const [i, turns] of arguments[0].entries()) {
    const chat = {turns: turns.map((content, j) => ({role: j % 2 ? 'assistant' : 'user', content, parent: j - 1})), at: turns.length - 1};
    await (await place).put(recordOf(String(i), 'w', chat, times[i]));
  }
})()"""
LISTED = "return [...document.querySelectorAll('#chats .open')].map((name) => [name.textContent, name.nextSibling.textContent])"


def listed(page):
    return page.run(LISTED)


def names(page):
    return [row[0] for row in listed(page)]


def put(page, *chats):
    """Puts chats of these turns beside the page, the latest first, and lists them."""
    page.run(PUT, chats)
    page.reload()
    page.wait(lambda: len(listed(page)) == len(chats))


def focused(page):
    return page.run("return document.activeElement.ariaLabel ?? document.activeElement.id")


def test_chats_have_dates_and_are_found_by_their_words(browser, scripted):
    page = Page(browser, scripted.url)
    put(page, ["Pagodas of wood?", "They sway."], ["Towers of stone?", "They stand."], ["Wood of oak?"], ["Never?"])
    now, before, long_ago, never = (row[1] for row in sorted(listed(page), key=lambda row: ["Pag", "Tow", "Woo", "Nev"].index(row[0][:3])))
    assert ":" in now and before == "Yesterday" and "2020" in long_ago and never == ""
    assert page.all("#chats time")[1].get_attribute("datetime").endswith("Z")
    page.run("return (async () => (await place).put({id: 'x', time: 1, title: 'Broken?', length: 1, turns: 7}))()")
    search = page.find("#search")
    for words, found in {"they": ["Pagodas of wood?", "Towers of stone?"], "WOOD sway": ["Pagodas of wood?"], "steel": []}.items():
        search.clear()
        search.send_keys(words)
        page.wait(lambda: names(page) == found)  # noqa: B023
    assert page.text("#search-result") == "No chats have these words" and not page.find("#delete-all").is_displayed()
    search.send_keys(Keys.BACKSPACE * 5)
    page.wait(lambda: len(names(page)) == 5)


def test_names_are_changed_by_keyboard(browser, scripted):
    page = Page(browser, scripted.url)
    page.screen(320)
    put(page, ["First?", "One"], ["Second?", "Two"])
    dates = [row[1] for row in listed(page)]
    page.find("#chats .open").send_keys(Keys.TAB, Keys.ENTER)
    browser.switch_to.active_element.send_keys("word" * 60, Keys.ENTER)
    page.wait(lambda: names(page) == ["word" * 50, "Second?"])
    assert focused(page) == "Rename the chat: " + "word" * 50
    assert page.run("return document.querySelector('main').scrollWidth") <= 320
    page.picture("list-320")
    page.all("#chats .open")[1].send_keys(Keys.F2)
    browser.switch_to.active_element.send_keys("Never", Keys.ESCAPE)
    page.wait(lambda: focused(page) == "Rename the chat: Second?")
    assert [row[1] for row in listed(page)] == dates
    page.find("#chats .open").click()
    page.wait(lambda: page.answers() == ["One"])
    scripted.answers = [["More"]]
    page.ask("More?")  # the name stays
    assert page.run("return markdownOf(shownTurns(chat), chat.name)").startswith("# wordword")
    page.run("return importedChat(new File([fileOf(chat)], 'chat.json')).then(keepChat)")
    page.find("#new").click()
    page.wait(lambda: names(page) == ["word" * 50, "word" * 50, "Second?"])
    page.find("#chats .rename").click()
    browser.switch_to.active_element.send_keys(Keys.BACKSPACE)
    page.find("#welcome h2").click()  # which keeps it too
    page.wait(lambda: names(page) == ["First?", "word" * 50, "Second?"])
    page.find("#chats .remove").send_keys(Keys.ENTER)
    page.wait(lambda: focused(page) == "Delete the chat: " + "word" * 50)


def test_an_answer_goes_on_while_others_are_read(browser, scripted):
    page = Page(browser, scripted.url)
    more = threading.Event()
    scripted.answers = [["So far", more, " and more"], ["Two"]]
    page.say("First?")
    page.wait(lambda: page.answers() == ["So far"])
    page.find("#new").click()
    page.wait(lambda: listed(page) == [["First?", "Answering"]])
    assert page.find("#send").is_displayed() and not page.find("#stop").is_displayed()
    page.ask("Second?")
    assert page.answers() == ["Two"] and page.questions() == ["Second?"]
    page.find("#new").click()
    page.wait(lambda: dict(listed(page)).get("First?") == "Answering" and ":" in dict(listed(page)).get("Second?", ""))
    page.find("#input").send_keys(Keys.ESCAPE)  # stops what is shown alone
    more.set()
    page.wait(lambda: ":" in dict(listed(page)).get("First?", ""))
    page.reload()
    page.wait(lambda: names(page) == ["First?", "Second?"])
    page.find("#chats .open").click()
    page.wait(lambda: page.answers() == ["So far and more"])
    assert "interrupted" not in page.text(".facts")


def test_one_comes_back_to_an_answer_under_way(browser, scripted):
    page = Page(browser, scripted.url)
    more = threading.Event()
    scripted.answers = [[{"reasoning_content": "I think."}, "So far", more, " and more"]]
    page.say("First?")
    page.wait(lambda: page.answers() == ["So far"])
    page.find("#new").click()
    page.wait(lambda: listed(page) == [["First?", "Answering"]])
    page.picture("answering")
    page.find("#chats .open").click()
    page.wait(lambda: page.answers() == ["So far"])
    assert page.find("#stop").is_displayed() and page.text(".thought summary") == "Thoughts"
    assert page.questions() == ["First?"]
    more.set()
    page.wait_until_idle()
    assert page.answers() == ["So far and more"] and page.text(".again") == "Try again"


def test_a_chat_that_is_deleted_while_it_is_answered_stays_away(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["So far", threading.Event()]]
    page.say("First?")
    page.wait(lambda: page.answers() == ["So far"])
    page.find("#new").click()
    page.wait(lambda: names(page) == ["First?"])
    page.find("#chats .remove").click()
    page.wait(lambda: page.run("return changing.then(() => runs.size === 0)"))
    page.reload()
    assert page.run("return listedChats()") == []


def test_a_reload_keeps_what_others_have_of_their_answers(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["So far", threading.Event()], ["Two", threading.Event()]]
    for question, text in {"First?": "So far", "Second?": "Two"}.items():
        page.find("#new").click()
        page.say(question)
        page.wait(lambda: page.answers() == [text])  # noqa: B023
    page.reload()
    assert page.answers() == ["Two"] and "interrupted" in page.text(".facts")
    page.find("#new").click()
    page.wait(lambda: sorted(names(page)) == ["First?", "Second?"])
    page.all("#chats .open")[names(page).index("First?")].click()
    page.wait(lambda: page.answers() == ["So far"])
    assert "interrupted" in page.text(".facts")


def written(page):
    return page.find("#input").get_property("value"), [each.text for each in page.all("#attached .chip .name")]


def test_what_is_being_written_stays_with_its_chat(browser, scripted, tmp_path):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Three"]]
    page.ask("First?")
    page.find("#input").send_keys("Half a mess")
    (tmp_path / "a.txt").write_text("text")
    page.run("$('attach-files').hidden = false")
    page.find("#attach-files").send_keys(str(tmp_path / "a.txt"))
    page.wait(lambda: written(page) == ("Half a mess", ["a.txt"]))
    page.reload()
    page.wait(lambda: written(page) == ("Half a mess", ["a.txt"]))
    page.find("#new").click()
    assert written(page) == ("", [])
    page.find("#input").send_keys("Another")
    page.reload()
    page.wait(lambda: written(page) == ("Another", []))
    page.find("#chats .open").click()
    page.wait(lambda: written(page) == ("Half a mess", ["a.txt"]))
    page.find("#send").click()
    page.wait(lambda: page.answers() == ["One", "Two"])
    page.reload()
    assert written(page) == ("", [])
    page.find("#new").click()
    assert written(page) == ("Another", [])
    page.find("#ideas button").click()  # a question that is not the written one
    page.wait(lambda: page.answers() == ["Three"])
    assert written(page) == ("Another", [])
    # Broken drafts break nothing.
    page.find("#new").click()
    for text in ['{"drafts": 7}', '{"drafts": [7, ["", {"text": 1, "files": []}], ["", {"text": "x", "files": {}}], ["", {"text": "Good", "files": []}]]}']:
        page.run("removeEventListener('pagehide', storeDrafts); sessionStorage.setItem('pagoda.drafts', arguments[0])", text)
        page.reload()
    page.wait(lambda: written(page) == ("Good", []))
