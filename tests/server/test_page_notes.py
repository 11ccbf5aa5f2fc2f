"""Footnotes on the page: which texts are notes, how they come, and that no two answers share an id."""

import re

import pytest
from page_driver import Page

@pytest.mark.parametrize("text, html", [
    ("a[^1] b[^n] [^x]\n\n[^1]: One *x*\n[^n]: two\n    more\n\n    - list\n\nafter",
     "<p>a<a>1</a> b<a>2</a> [^x]</p><note>1 <p>One <em>x</em></p></note><note>2 <p>two<br>more</p><ul><li>list</li></ul></note><p>after</p>"),
    ("text[^a]\n[^a]: x\n> q", "<p>text<a>1</a></p><note>1 <p>x</p></note><blockquote><p>q</p></blockquote>"),
    ("`[^1]` and [^1](b)\n\n[^1]:\n\n    late", "<p><code>[^1]</code> and <a>1</a>(b)</p><note>1 <p>late</p></note>"),
    ("[^1]:\n\nb[^1]", "<note>1 </note><p>b<a>1</a></p>"),
    ("> a[^1]\n>\n> [^1]: x", "<blockquote><p>a<a>1</a></p><note>1 <p>x</p></note></blockquote>"),
    ("[^1]: one\n\n[^1]: again [^1]", "<note>1 <p>one</p></note><note>1 <p>again <a>1</a></p></note>"),
    ("[^constructor] [^ 1]: x [^]: y\n\n    [^1]: code", "<p>[^constructor] [^ 1]: x [^]: y</p><code>[^1]: code</code>"),
])
def test_notes_are_drawn(page, text, html):
    drawn = page.draw(text)[-1]
    drawn = re.sub(r'<sup>(<a) [^>]*>(\d</a>)</sup>', r"\1>\2", drawn)
    drawn = re.sub(r'<div class="note"[^>]*><sup>(\d)</sup><div>(.*?)</div><button.*?</button></div>', r"<note>\1 \2</note>", drawn)
    drawn = re.sub(r'<div class="code">.*(<code>.*</code>)</pre></div>', r"\1", drawn)
    assert drawn.replace(' class="tight"', "") == html


def test_a_stream_of_notes_shows_what_its_text_shows(page):
    text = "One[^1] **two**[^long]\n\n- three [^1]\n\n[^1]: The *first*\n    goes on\n\n[^long]: Second [^1]\n\nEnd [^1]."
    others, links = page.run("""
        const [text] = arguments;
        const streamed = new MarkdownView(document.createElement('div'));
        const links = [];
        const plain = ({element}) => element.innerHTML.replace(/note-\\d+/g, 'note');
        const others = Array.from(text, (_, i) => text.slice(0, i + 1)).filter((beginning) => {
          const anew = new MarkdownView(document.createElement('div'));
          [streamed, anew].forEach((view) => view.show(beginning, true));
          links.push(streamed.element.querySelectorAll('a').length);
          return plain(streamed) !== plain(anew);
        });
        return [others, links];""", text)
    assert others == [] and links == sorted(links) and links[-1] == 5


def test_notes_within_notes_end(page):
    assert page.milliseconds_to_draw("[^a]: " * 10000) < 5000


def test_ids_are_an_answers_own(browser, scripted):
    page = Page(browser, scripted.url)
    text = "a[^1] b[^1]\n\n[^1]: see <b id=input>\n[^1]: twice"
    scripted.answers = [[text], [{"reasoning_content": "[^1]\n\n[^1]: x"}, "<think>a[^1]\n\n[^1]: x</think>", text]]
    page.ask("One?")
    page.ask("Two?")
    ids = page.run("return [...document.querySelectorAll('#log [id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids)) == 3 and all(re.fullmatch(r"note-\d+-\d+", each) for each in ids)
    second = page.all(".turn.assistant .text")[1]
    leads_to = page.run("return [...arguments[0].querySelectorAll(':scope > p a')].map((each) => document.querySelector(each.hash).textContent)", second)
    assert leads_to == ["1see <b id=input>↩"] * 2
    page.run("arguments[0].querySelector(':scope > .note button').click()", second)
    assert page.run("return document.activeElement === arguments[0].querySelector(':scope > p a')", second)
