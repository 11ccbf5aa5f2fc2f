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
    next(link for link in page.all(".passing") if link.text == "Earlier answer").click()
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


def test_any_answer_is_tried_again(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Two"], ["Other"]]
    page.ask("First?")
    page.ask("Second?")
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Other"])
    page.wait_until_idle()
    assert page.questions() == ["First?"] and places(page) == ["2 / 2"] and told(scripted) == ["First?"]
    go(page, "Previous answer")
    assert page.questions() == ["First?", "Second?"] and page.answers() == ["One", "Two"]


def link(page, text):
    """The last link of that text."""
    return [each for each in page.all(".foot .link") if each.text == text][-1]


def test_an_answer_goes_on_where_it_ended(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["A **bo"], Refusal(429), ["ld** word"], [], ["More"]]
    page.ask("First?")
    page.ask("Second?")
    assert [each.text for each in page.all(".foot .link")].count("Continue") == 1
    link(page, "Continue").click()
    page.wait(lambda: page.all(".trouble"))
    page.wait_until_idle()
    assert page.answers() == ["One", "A **bo"]
    link(page, "Continue").send_keys(Keys.ENTER)
    page.wait(lambda: page.answers() == ["One", "A bold word"])
    page.wait_until_idle()
    assert page.all(".trouble") == [] and places(page) == [] and told(scripted) == ["First?", "One", "Second?", "A **bo"]
    assert scripted.asked[-1]["continue_final_message"] is True and scripted.asked[-1]["add_generation_prompt"] is False
    link(page, "Continue").click()
    page.wait(lambda: "nothing follows" in page.all(".facts")[-1].text)
    page.ask("Third?")
    assert told(scripted) == ["First?", "One", "Second?", "A **bold** word", "Third?"]
    assert "continue_final_message" not in scripted.asked[-1]


def test_messages_are_deleted(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], ["Other"], ["Two"], ["Again"]]
    page.ask("First?")
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Other"])
    page.wait_until_idle()
    page.ask("Second?")
    page.find(".turn.assistant .delete").click()
    assert page.find(".turn.assistant .delete").text == "Delete it and all that follows?"
    page.find("#input").click()  # not that
    assert page.find(".turn.assistant .delete").text == "Delete" and page.answers() == ["Other", "Two"]
    page.find(".turn.assistant .delete").send_keys(Keys.ENTER, Keys.ENTER)
    page.wait(lambda: page.answers() == ["One"])
    assert page.questions() == ["First?"] and places(page) == []
    page.find(".turn.assistant .delete").click()
    page.find(".turn.assistant .delete").click()
    assert page.text(".facts") == "There is no answer"
    page.reload()
    page.find(".again").click()
    page.wait(lambda: page.answers() == ["Again"])
    page.wait_until_idle()
    page.find("#input").send_keys("Half")
    page.find(".turn.user .delete").click()
    page.find(".turn.user .delete").click()
    page.wait(lambda: page.find("#welcome").is_displayed() and not page.find("#earlier").is_displayed())
    assert page.find("#input").get_property("value") == "Half"
