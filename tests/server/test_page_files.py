"""Chats leave the page as files and come back from them; a file that is none is refused in words."""

import json

import pytest
from page_driver import Page


@pytest.fixture
def downloads(browser, tmp_path):
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    return tmp_path


def exported(page, downloads, kind):
    page.find("#open-export").click()
    page.find(f"#export-{kind}").click()
    ending = {"markdown": "*.md", "json": "*.json"}[kind]
    page.wait(lambda: list(downloads.glob(ending)))
    return next(downloads.glob(ending))


def take_in(page, path):
    page.run("$('import-file').hidden = false")
    page.find("#import-file").send_keys(str(path))


def test_a_chat_goes_into_a_file_and_comes_back(browser, scripted, downloads):
    page = Page(browser, scripted.url)
    assert not page.find("#open-export").is_displayed()
    scripted.answers = [["One **bold** word"], ["Two"], ["Three"]]
    page.ask("Première question?/..")
    page.ask("Second?")
    path = exported(page, downloads, "markdown")
    assert path.name == "Première-question.md"
    assert path.read_text() == ("# Première question?/..\n\n## Question\n\nPremière question?/..\n\n## Answer\n\nOne **bold** word\n\n"
                                "## Question\n\nSecond?\n\n## Answer\n\nTwo\n")
    path = exported(page, downloads, "json")
    page.find("#new").click()
    take_in(page, path)
    page.wait(lambda: page.questions() == ["Première question?/..", "Second?"])
    assert page.answers() == ["One bold word", "Two"]
    page.reload()
    page.ask("Third?")
    assert [message["content"] for message in scripted.asked[-1]["messages"]] == [
        "Première question?/..", "One **bold** word", "Second?", "Two", "Third?"]


GOOD = {"format": "pagoda.chat", "version": 1, "turns": [{"role": "user", "content": "Kept?"}]}


@pytest.mark.parametrize("text, words", [
    ("{", "expected JSON"),
    ("null", "expected the format pagoda.chat, got undefined"),
    (json.dumps({**GOOD, "format": "x" * 1000}), "expected the format pagoda.chat, got " + "x" * 40 + "."),
    (json.dumps({**GOOD, "version": 9}), "expected version 1 or 2, got 9"),
    (json.dumps({**GOOD, "version": 2}), "expected an earlier turn as parent in turn 1, got undefined"),
    (json.dumps({**GOOD, "version": 2, "turns": [{"role": "user", "content": "x", "parent": 0}]}), "expected an earlier turn as parent in turn 1, got 0"),
    (json.dumps({**GOOD, "version": 2, "turns": [{"role": "user", "content": "x", "parent": -1}], "at": 1}), "expected one of 1 turns as at, got 1"),
    (json.dumps({**GOOD, "turns": {}}), "expected a list of 1 to 4096 turns, got object"),
    (json.dumps({**GOOD, "turns": GOOD["turns"] * 4097}), "expected a list of 1 to 4096 turns, got 4097"),
    (json.dumps({**GOOD, "turns": [{"role": "system", "content": "x"}]}), "expected the role user or assistant in turn 1, got system"),
    (json.dumps({**GOOD, "turns": [{"role": "user", "content": ["x"]}]}), "expected a text as content in turn 1, got object"),
    (json.dumps({**GOOD, "turns": [{"role": "user", "content": "x" * 2_000_001}]}), "expected at most 2000000 characters, got 2000001"),
    (json.dumps({**GOOD, "turns": [{"role": "assistant", "content": "x"}]}), "expected a question, got none"),
    (" " * 16_000_001, "expected at most 16000000 bytes, got 16000001"),
], ids=range(14))
def test_a_file_that_is_no_chat_is_refused_in_words(browser, scripted, tmp_path, text, words):
    page = Page(browser, scripted.url)
    path = tmp_path / "chat.json"
    path.write_text(text)
    take_in(page, path)
    page.wait(lambda: page.find("#import-trouble").is_displayed())
    assert words in page.text("#import-trouble") and page.questions() == []


def test_a_file_of_an_earlier_version_is_taken_in(browser, scripted, tmp_path):
    page = Page(browser, scripted.url)
    (tmp_path / "chat.json").write_text(json.dumps({**GOOD, "turns": [*GOOD["turns"], {"role": "assistant", "content": "Yes", "note": "1 token"}]}))
    take_in(page, tmp_path / "chat.json")
    page.wait(lambda: page.answers() == ["Yes"])
    assert page.questions() == ["Kept?"] and page.text(".facts") == "1 token"
