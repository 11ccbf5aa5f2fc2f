"""Formulas on the page: which texts are formulas, how they come, and what they can't do."""

import re

import pytest
from page_driver import Page
from test_page import CUT_OFF

def drawn(page, text, whole=True):
    """The HTML with each formula as {its letters and signs}, one that stands apart in double braces."""
    html = page.draw(text, whole=whole)[-1]
    html = re.sub(r'<span class="formula( apart)?"><math.*?</math></span>',
                  lambda found: f"{{{{{words(found[0])}}}}}" if found[1] else f"{{{words(found[0])}}}", html)
    return re.sub(r' (?:target|rel|class)="[^"]*"', "", html)


def words(html):
    return re.sub("<[^>]*>", "", html)


@pytest.mark.parametrize("text, html", [
    (r"$x^2$, \(a\,b\) and **$c*d*e$**", "<p>{x2}, {ab} and <strong>{c∗d∗e}</strong></p>"),
    (r"so $$y$$ or \[z=1\].", "<p>so {{y}} or {{z=1}}.</p>"),
    ("The:\n$$\n- a\n\n= c\n$$\nwhere", "<p>The:</p><p>{{−a=c}}</p><p>where</p>"),
    ("\\[\nx\n\\].", "<p>{{x.}}</p>"),
    ("> $$\n> x+1\n> $$", "<blockquote><p>{{x+1}}</p></blockquote>"),
    ("- a\n  \\[\n  x=1\n  \\]\n- b", "<ul><li>a<p>{{x=1}}</p></li><li>b</li></ul>"),
    (r"\begin{align}a&=b\end{align}", "<p>{{a=b}}</p>"),
    ("a $p_1\nq$ b", "<p>a {p1q} b</p>"),
    # Dollars that are none of a formula.
    ("costs $5 and $6", "<p>costs $5 and $6</p>"),
    ("$5, or $6; US$5, $10-$20 and $x$", "<p>$5, or $6; US$5, $10-$20 and {x}</p>"),
    ("$5 million and 6$", "<p>$5 million and 6$</p>"),
    ("$HOME/bin:$PATH and $ x $", "<p>$HOME/bin:$PATH and $ x $</p>"),
    ("$$ to $$ or $$$", "<p>$$ to $$ or $$$</p>"),
    (r"a\$b\$c", "<p>a$b$c</p>"),
    (r"\[1\], \[a\](b) and \(\)", "<p>[1], [a](b) and ()</p>"),
    # Formulas that can't be read show their source, as it is.
    (r"$\nothing\,x_1_$ and $$\frac1$$", r"<p>$\nothing\,x_1_$ and $$\frac1$$</p>"),
    ("$$\n\\frac{*1*\n$$", "<p>$$\n\\frac{*1*\n$$</p>"),
    ("$$\nx is never closed", "<p>$$<br>x is never closed</p>"),
])
def test_formulas_are_told_from_other_texts(page, text, html):
    assert drawn(page, text) == html


@pytest.mark.parametrize("text", ["`$x$`", "`$x` y$", "```\n$x$\n$$\ny\n$$\n```", "    \\[x=1\\]", "`\\(x\\)`", "$a `b$ c`"])
def test_nothing_is_drawn_within_code(page, text):
    assert "<math" not in page.draw(text)[-1]


@pytest.mark.parametrize("text", [
    r"\href{javascript:alert(1)}{x}", r"\url{https://x.y}", r"\htmlData{a=b}{x}", r"\htmlId{input}{x}", r"\class{round}{x}",
    r"\includegraphics{https://x.y/z.png}", r"\label{input}x", r"\ref{input}", r"\text{<img src=x onerror=alert(1)>}", r"x \tag{1}",
    r"\color{url(https://x.y)}x", r"\style{position:fixed}{x}", r"\def\a{x}\a", r"\gdef\a{x}\a", r"\newcommand{\a}{x}\a",
])
def test_a_formula_is_nothing_but_a_formula(page, text):
    html = page.draw(f"${text}$")[-1]
    assert set(re.findall(r"<(\w+)", html)) <= {"p", "span", "math", "mrow", "mi", "mtext", "mstyle", "mtable", "mtr", "mtd"}
    assert not re.search(r"<[^>]*(?: (?:href|src|id|on\w+|data-\w+)=|url\()", html)


def test_half_a_formula_is_text_until_it_is_whole(page):
    """What has been drawn stays, markup within a formula is none, and nothing changes but from a source to its formula."""
    text = "Let **all $a_1*b_1*c$ be**\n\n- \\(\\sqrt{x}\\,\\)\n\nso\n\\[\n\\frac{1}{2}\n- x\n\\]\n\n$$y$$ ends"
    beginnings = [text[:end] for end in range(1, len(text) + 1)]
    for shown, html in zip(beginnings, page.draw(*beginnings, whole=False), strict=True):
        assert not re.search("<(?:em|h3|h4|a|code)", html), shown
        assert html.count("<math") == sum(shown.count(end) for end in ["c$", "\\)", "\\]", "y$$"]), shown
        assert shown.count("- ") < 2 or html.count("<li") == 1, shown
    assert drawn(page, text[:text.index("{2")], whole=False).endswith("<p>so</p><p>\\[\n\\frac{1}</p>")
    assert drawn(page, text[:text.index("*c$")], whole=False) == "<p>Let <strong>all $a_1*b_1</strong></p>"


@pytest.mark.parametrize("text", ["It costs $5 and **much", "as $HOME says, **all", "in $US the price of **all"])
def test_a_price_does_not_hold_up_what_follows(page, text):
    assert "<strong>" in drawn(page, text, whole=False)


def test_a_stream_of_formulas_shows_what_its_text_shows(page):
    text = "before\n$$\nnever closed\n\n" + "word " * 900 + "\n\n> \\[\n> x\n\n$y$ and $z\n\n$$a$$"
    others = page.run("""
        const [text] = arguments;
        const streamed = new MarkdownView(document.createElement('div'));
        return Array.from({length: 400}, (_, i) => Math.ceil(text.length * (i + 1) / 400)).filter((end) => {
          const anew = new MarkdownView(document.createElement('div'));
          [streamed, anew].forEach((view) => view.show(text.slice(0, end), true));
          return streamed.element.innerHTML !== anew.element.innerHTML;
        });""", text)
    assert others == []


@pytest.mark.parametrize("text", [
    "$" * 50000, "$a " * 16000, "$a$" * 8000, "\\(" * 25000, "\\[\n" * 16000, "$$\n" * 16000, "> $$\n" * 10000, "$$\n" + "x\n" * 25000,
    "$" + "{" * 3000 + "x" + "}" * 3000 + "$", "$" + "x^{" * 900 + "}" * 900 + "$", "$" + "\\sqrt{" * 300 + "}" * 300 + "$",
    "\\begin{cases}\n" * 3000, "$" + "\\\\" * 20000 + "$",
], ids=lambda text: text[:12].strip())
def test_formulas_made_to_hang_a_reader_are_drawn(page, text):
    milliseconds = page.milliseconds_to_draw(text[:len(text) // 4], text)
    assert milliseconds < 30000


LONG = "a+" * 150 + "b"
WIDE = f"Within ${LONG}$ a line.\n\n$$\n{LONG}\n$$\n\n- $$\\boxed{{\\text{{{'word' * 60}}}}}$$\n\n| a |\n|---|\n| ${LONG}$ |\n\n> \\[ {LONG} \\tag{{1}} \\]"


@pytest.mark.parametrize("width", [320, 1280])
def test_a_wide_formula_is_scrolled_in_its_own_box(browser, scripted, width):
    page = Page(browser, scripted.url)
    page.screen(width)
    scripted.answers = [[WIDE, " \n\nshort: $x$"]]
    page.ask("Maths?")
    assert page.run(CUT_OFF) == []
    assert page.run("return document.querySelector('main').scrollWidth") <= width
    page.wait(lambda: len(page.all(".formula[tabindex]")) == 5)
    boxes = page.run("return [...document.querySelectorAll('.formula')].map((box) => [box.scrollWidth > box.clientWidth, box.tabIndex, box.clientHeight])")
    assert len(boxes) == 6 and all((is_wide, tab_index) == (True, 0) for is_wide, tab_index, _ in boxes[:5])
    assert boxes[5][:2] == [False, -1] and boxes[5][2] < 40
    page.picture(f"maths-{width}")
