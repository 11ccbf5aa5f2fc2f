"""An earlier question asked otherwise and an answer tried again are branches: the old ones are kept, and reached by arrows."""

from page_driver import Page
from scripted_server import Refusal
from selenium.webdriver.common.keys import Keys


def edit(page, i, text, *keys):
    page.all(".edit")[i].click()
    page.find(".editor textarea").clear()
    page.find(".editor textarea").send_keys(text, *keys)


def places(page):
    return [each.text for each in page.all(".branch .place")]


def go(page, name):
    page.find(f".branch [aria-label='{name}']").click()


def told(scripted):
    return [message["content"] for message in scripted.asked[-1]["messages"]]


def test_an_earlier_question_is_asked_otherwise(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Other"], ["Third"], ["More"]]
    page.ask("First?")
    page.ask("Second?")
    edit(page, 0, "Other?", Keys.ENTER)
    page.wait(lambda: page.answers() == ["Other"])
    page.wait_until_idle()
    assert page.questions() == ["Other?"] and places(page) == ["2 / 2"] and told(scripted) == ["Other?"]
    assert not page.find(".branch [aria-label='Next question']").is_enabled()
    go(page, "Previous question")
    assert page.questions() == ["First?", "Second?"] and page.answers() == ["One", "Two"] and places(page) == ["1 / 2"]
    assert page.run("return document.activeElement.ariaLabel") == "Next question"
    page.reload()
    assert page.questions() == ["First?", "Second?"] and places(page) == ["1 / 2"]
    edit(page, 0, "Third?")
    page.find(".editor .main").click()
    page.wait(lambda: page.answers() == ["Third"])
    page.wait_until_idle()
    assert places(page) == ["3 / 3"]
    go(page, "Previous question")
    page.ask("More?")
    assert page.questions() == ["Other?", "More?"] and told(scripted) == ["Other?", "Other", "More?"]
    page.find("#new").click()
    page.wait(lambda: page.find("#earlier").is_displayed())
    assert len(page.all("#chats .open")) == 1


def test_trying_again_keeps_the_first_answer(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["More"], Refusal(500)]
    page.ask("First?")
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Two"])
    page.wait_until_idle()
    assert places(page) == ["2 / 2"] and told(scripted) == ["First?"]
    go(page, "Previous answer")
    page.ask("More?")
    assert told(scripted) == ["First?", "One", "More?"]
    page.reload()
    assert page.answers() == ["One", "More"] and places(page) == ["1 / 2"]
    go(page, "Next answer")
    assert page.answers() == ["Two"] and page.questions() == ["First?"]
    page.find(".again").click()
    page.wait(lambda: page.all(".trouble"))
    page.wait_until_idle()
    next(link for link in page.all(".again") if link.text == "Earlier answer").click()
    assert page.answers() == ["One", "More"]


def test_an_edit_can_be_given_up(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"]]
    page.ask("First?")
    for give_up in [lambda: page.find(".editor button").click(), lambda: page.find(".editor textarea").send_keys(Keys.ESCAPE)]:
        edit(page, 0, "Other?", Keys.SHIFT, Keys.ENTER)
        give_up()
        assert page.questions() == ["First?"] and page.all(".editor, .branch") == []
        assert page.run("return document.activeElement.textContent") == "Edit"
    page.find(".edit").click()
    page.find(".editor .main").click()  # nothing is different
    assert len(scripted.asked) == 1 and page.all(".editor") == []


def test_a_question_too_long_leaves_the_other_branch(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], Refusal(400, "too long", "context_length_exceeded")]
    page.ask("First?")
    page.ask("Second?")
    edit(page, 1, "Long?", Keys.ENTER)
    page.wait(lambda: page.all(".trouble .link"))
    page.wait_until_idle()
    page.find(".trouble .link").click()
    assert page.find("#input").get_property("value") == "Long?"
    page.wait(lambda: page.all("#chats .open"))
    page.find("#chats .open").click()
    page.wait(lambda: page.questions() == ["First?", "Second?"])
    assert page.answers() == ["One", "Two"] and places(page) == []
