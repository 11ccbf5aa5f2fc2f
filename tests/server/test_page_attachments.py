"""Text files beside a question: chosen or dropped, shown as chips, told to the model as fenced blocks; others are refused in words."""

import json

import pytest
from page_driver import Page
from scripted_server import Refusal
from selenium.webdriver.common.keys import Keys


def choose(page, *paths):
    page.run("$('attach-files').hidden = false")
    page.find("#attach-files").send_keys("\n".join(str(path) for path in paths))
    page.run("$('attach-files').hidden = true")


DROP = """
const transfer = new DataTransfer();
for (const [name, text] of arguments[0]) transfer.items.add(new File([text], name));
for (const type of ['dragover', 'drop']) {
  document.body.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: transfer}));
}
"""


PASTE = """
const clipboardData = new DataTransfer();
clipboardData.items.add(new File(['PNG'], 'image.png', {type: 'image/png'}));
$('input').dispatchEvent(new ClipboardEvent('paste', {clipboardData, bubbles: true, cancelable: true}));
"""


def chips(page, where="#attached"):
    return [each.text for each in page.all(f"{where} .chip .name")]


def told(scripted):
    return [message["content"] for message in scripted.asked[-1]["messages"]]


def test_files_are_told_as_fenced_blocks(browser, scripted, tmp_path):
    page = Page(browser, scripted.url)
    (tmp_path / "notes.txt").write_text("One line\nand ünother\n")
    choose(page, tmp_path / "notes.txt")
    page.wait(lambda: chips(page) == ["notes.txt"])
    page.run(DROP, [["code `x`.md", "````\nfenced\n````"], ["empty", ""]])
    page.wait(lambda: chips(page) == ["notes.txt", "code `x`.md", "empty"])
    page.find("#attached [aria-label='Remove the file: empty']").click()
    assert chips(page) == ["notes.txt", "code `x`.md"]
    scripted.answers = [["One"], ["Two"], ["Other"]]
    page.ask("What is this?")
    first = "```notes.txt\nOne line\nand ünother\n```\n\n`````code _x_.md\n````\nfenced\n````\n`````\n\nWhat is this?"
    assert told(scripted) == [first] and chips(page) == []
    assert page.questions() == ["What is this?"] and chips(page, ".turn.user") == ["notes.txt", "code `x`.md"]
    page.reload()
    assert chips(page, ".turn.user") == ["notes.txt", "code `x`.md"]
    page.ask("And?")
    assert told(scripted) == [first, "One", "And?"]
    page.all(".edit")[0].click()
    page.find(".editor textarea").send_keys("!", Keys.ENTER)  # an edited question keeps its files
    page.wait(lambda: page.answers() == ["Other"])
    assert told(scripted) == [first + "!"]


def test_what_is_no_text_is_refused_in_words(browser, scripted, tmp_path):
    page = Page(browser, scripted.url)
    for name, content in {"a.png": b"\x89PNG\r\n" * 50_000, "b.bin": b"a\0b", "c.txt": b"x" * 200_001, "d.txt": b"x" * 200_000}.items():
        (tmp_path / name).write_bytes(content)
    for name, words in {"a.png": "“a.png” is left out: images are not read here, only text is.", "b.bin": "“b.bin” is left out: it is no text in UTF-8.",
                        "c.txt": "“c.txt” is left out: it has 200001 bytes, and 200000 can be attached."}.items():
        choose(page, tmp_path / name)
        page.wait(lambda: page.text("#attach-trouble") == words)  # noqa: B023
        assert chips(page) == []
    page.run(PASTE)
    page.wait(lambda: page.text("#attach-trouble") == "“image.png” is left out: images are not read here, only text is.")
    choose(page, tmp_path / "d.txt")
    page.wait(lambda: chips(page) == ["d.txt"])
    assert not page.find("#attach-trouble").is_displayed()
    page.run(DROP, [[f"{i}", "x"] for i in range(9)])
    page.wait(lambda: len(chips(page)) == 8)
    assert "“8” is left out: a question takes 8 files." in page.text("#attach-trouble")


def test_files_go_along_to_a_new_chat(browser, scripted):
    page = Page(browser, scripted.url)
    scripted.answers = [["One"], Refusal(400, "too long", "context_length_exceeded"), ["Two"]]
    page.ask("First?")
    page.run(DROP, [["a.txt", "text"]])
    page.wait(lambda: chips(page) == ["a.txt"])
    page.ask("Second?")
    page.find(".trouble .link").click()
    assert chips(page) == ["a.txt"]
    page.find("#send").click()
    page.wait(lambda: page.answers() == ["Two"])
    assert told(scripted) == ["```a.txt\ntext\n```\n\nSecond?"]


@pytest.mark.parametrize("files, words", [
    ({}, "expected at most 8 files in turn 1, got object"),
    ([{"name": "a", "text": "b"}] * 9, "expected at most 8 files in turn 1, got 9"),
    ([{"name": "a" * 256, "text": "b"}], "expected a file's name of at most 255 characters in turn 1, got 256"),
    ([{"text": "b"}], "expected a file's name of at most 255 characters in turn 1, got undefined"),
    ([{"name": "a", "text": 1}], "expected a file's text in turn 1, got number"),
    ([{"name": "a", "text": "b" * 2_000_000}], "expected at most 2000000 characters, got 2000001"),
], ids=range(6))
def test_files_of_an_imported_chat_are_checked(browser, scripted, tmp_path, files, words):
    page = Page(browser, scripted.url)
    chat = {"format": "pagoda.chat", "version": 2, "turns": [{"role": "user", "content": "x", "parent": -1, "files": files}], "at": 0}
    (tmp_path / "chat.json").write_text(json.dumps(chat))
    page.run("$('import-file').hidden = false")
    page.find("#import-file").send_keys(str(tmp_path / "chat.json"))
    page.wait(lambda: words in page.text("#import-trouble"))


@pytest.mark.parametrize("width", [320, 1280])
def test_long_names_are_not_cut_off(browser, scripted, width):
    page = Page(browser, scripted.url)
    page.screen(width)
    page.run(DROP, [["word" * 50 + ".txt", "text"], ["word" * 40 + ".bin", "\0"]])
    page.wait(lambda: page.find("#attach-trouble").is_displayed())
    ends = "return [...document.querySelectorAll('.chip, .chip button, #attach-trouble, #attach')].map((each) => each.getBoundingClientRect().right)"
    assert max(page.run(ends)) <= width
    for selector in ["#attach", ".chip button"]:
        size = page.find(selector).size
        assert size["width"] >= 44 and size["height"] >= 44, selector
    page.picture(f"attached-{width}")
    scripted.answers = [["One"]]
    page.ask("What is this?")
    assert max(page.run(ends)) <= width
