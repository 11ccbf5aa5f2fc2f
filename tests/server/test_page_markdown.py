"""What the page makes of a model's Markdown, whole and as it comes, and of texts that mean it ill."""

import re

import pytest

def drawn(page, text, whole=True):
    html = page.draw(text, whole=whole)[-1]
    html = re.sub(r' (?:target|rel|tabindex|role|aria-label|scope|type|class)="[^"]*"', "", html)
    return html.replace("<button>Copy</button>", "").replace(' style="text-align: left;"', "")


@pytest.mark.parametrize("text, html", [
    ("a **b *c* d** `x` ~~no~~ ***both***",
     "<p>a <strong>b <em>c</em> d</strong> <code>x</code> <del>no</del> <em><strong>both</strong></em></p>"),
    ("snake_case_name _em_ 2 * 3 * 4 \\*as is\\*", "<p>snake_case_name <em>em</em> 2 * 3 * 4 *as is*</p>"),
    ("这是**“重点”**的", "<p>这是<strong>“重点”</strong>的</p>"),
    ("``a ` b`` and `un", "<p><code>a ` b</code> and `un</p>"),
    ("one\ntwo<br>three", "<p>one<br>two<br>three</p>"),
    ("# One #\n#### Four\n#hashtag\n\n---", "<h3>One</h3><h5>Four</h5><p>#hashtag</p><hr>"),
    ("7. x\n8. y", '<ol start="7"><li>x</li><li>y</li></ol>'),
    ("In\n1986. A year", "<p>In<br>1986. A year</p>"),
    ("- a\n  - b\n    1. c\n- d\n\n  more\n- [x] done",
     "<ul><li><p>a</p><ul><li>b<ol><li>c</li></ol></li></ul></li><li><p>d</p><p>more</p></li><li><p>☑ done</p></li></ul>"),
    ("- [ ] to do\n- [X]\n- [y] no box", "<ul><li>☐ to do</li><li>☑ </li><li>[y] no box</li></ul>"),
    ("1. a\n\t- b\n\t\t- c\n2. d",
     "<ol><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ol>"),
    ("1. Run\n   ```sh\n   ls\n\n     two\n   ```\n2. Then",
     "<ol><li>Run<div><div><span>sh</span></div><pre><code><span>ls</span>\n\n  <span>two</span></code></pre></div></li><li>Then</li></ol>"),
    ("````\n```\n````\n~~~make\na:\n\tb\n~~~",
     "<div><div><span>code</span></div><pre><code>```</code></pre></div>"
     "<div><div><span>make</span></div><pre><code><span>a</span>:\n\tb</code></pre></div>"),
    ("| a | b |\n|:-:|--:|\n| 1 | `x\\|y` |\n| **2** |\n\nafter",
     '<div><table><tr><th style="text-align: center;">a</th><th style="text-align: right;">b</th></tr>'
     '<tr><td style="text-align: center;">1</td><td style="text-align: right;"><code>x|y</code></td></tr>'
     '<tr><td style="text-align: center;"><strong>2</strong></td><td style="text-align: right;"></td></tr></table></div><p>after</p>'),
    ("- in a list:\n\n  a | b\n  -|-\n  1 | 2",
     "<ul><li><p>in a list:</p><div><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></div></li></ul>"),
    ("> a\n> - b\n> > c", "<blockquote><p>a</p><ul><li>b</li></ul><blockquote><p>c</p></blockquote></blockquote>"),
    ("[a **b**](https://x.y/z_(w)) ![i](http://x.y/i.png)",
     '<p><a href="https://x.y/z_(w)">a <strong>b</strong></a> <a href="http://x.y/i.png">i</a></p>'),
    ("(https://x.y/a_b). [https://x.y](https://x.y)",
     '<p>(<a href="https://x.y/a_b">https://x.y/a_b</a>). <a href="https://x.y">https://x.y</a></p>'),
    ("at https://x.y/a: **https://x.y/b:** https://x.y:80/c_:' https://x.y/d:e",
     '<p>at <a href="https://x.y/a">https://x.y/a</a>: <strong><a href="https://x.y/b">https://x.y/b</a>:</strong> '
     '<a href="https://x.y:80/c">https://x.y:80/c</a>_:\' <a href="https://x.y/d:e">https://x.y/d:e</a></p>'),
    ("<think>\nHm, *well*.\n</think>\n\nYes", "<details><summary>Thoughts</summary><div><p>Hm, <em>well</em>.</p></div></details><p>Yes</p>"),
    ("<div>\n *a*\n</div>\n\n*b* <i>c</i>", "<p>&lt;div&gt;\n *a*\n&lt;/div&gt;</p><p><em>b</em> &lt;i&gt;c&lt;/i&gt;</p>"),
    ("[a][r] [b](docs/b.md)\n\n[r]: https://x.y 'R'",
     '<p><a href="https://x.y" title="R">a</a> <span title="docs/b.md">b</span></p>'),
])
def test_markdown_is_drawn(page, text, html):
    assert drawn(page, text) == html


@pytest.mark.parametrize("text", [
    "[x](javascript:alert(1))", "[x](data:text/html,x)", "[x](//evil.org)", "[x](/health)", "![x](javascript:alert(1))",
    "[x](\tjavascript:alert(1))", "[x](java\nscript:alert(1))", "<a href='//x.y'>x</a>", "<https:javascript:alert(1)>",
    "[x](http:health)", "![x](/health)", "<a\nhref='https://x.y'>x</a>", "<div>\n<b>x</b>", "[x][r]\n\n[r]: javascript:alert(1)",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "`<b>`", "| <i> |\n|--|\n| <u> |", "- <b>\n> <b>\n# <b>",
    "```<b>\n</code><b>\n```",
])
def test_no_link_but_http_and_no_element_of_the_models(page, text):
    tags = set(re.findall(r"<(\w+)", page.draw(text)[-1]))
    assert tags.isdisjoint({"a", "b", "i", "u", "img", "script"})


STREAMED = """Some **bold text**, `code with a | bar` and a [link](https://example.org/path) to *see*.

| Tier | Height |
|:-----|-------:|
| one  | **3** m |
| two  | 2 m |

- a list
  1. with numbers
  2. and code:
     ```python
     for i in range(3):
         print("- no list")
     ```
- ends

> a quote

---

### A heading

~~~
| no table |
~~~

The end."""


def test_a_stream_changes_nothing_that_was_drawn(page):
    """Each beginning of a text looks like the beginning of its whole: a block keeps its kind, and no markup shows."""
    texts = [STREAMED[:end] for end in range(1, len(STREAMED) + 1)]
    seen = page.run("""
        const element = document.createElement('div');
        const view = new MarkdownView(element);
        const outline = () => [...element.querySelectorAll('*')].map((each) => each.tagName);
        const inProse = () => [...element.children].filter((each) => !each.matches('.code')).map((each) => {
          const copy = each.cloneNode(true);
          copy.querySelectorAll('code, .head').forEach((code) => code.remove());
          return copy.textContent;
        }).join('\\n');
        return arguments[0].map((text) => { view.show(text, true); return [outline(), inProse()]; });""", texts)
    whole = seen[-1][0]
    for text, (outline, prose) in zip(texts, seen):
        # Rows and cells of a table's end and paragraphs of an item may still be missing, nothing may be other than it will be.
        rest = iter(whole)
        assert all(tag in rest for tag in outline), text
        assert not re.search(r"[*`~|#>]|\]\(|--|https:", prose), text
    assert page.draw(*texts)[-1] == page.draw(STREAMED)[-1]


def test_an_address_that_comes_late_makes_links_of_what_was_drawn(page):
    kept = page.run("""
        const view = new MarkdownView(document.createElement('div'));
        view.show('no link\\n\\n[a][r]\\n\\nmore', true);
        const [first, second] = view.element.children;
        view.show('no link\\n\\n[a][r]\\n\\nmore\\n\\n[r]: https://x.y\\n\\nand', true);
        return first === view.element.children[0] && second.textContent === 'a' && view.element.querySelectorAll('p a').length;""")
    assert kept == 1


def test_thoughts_that_were_unfolded_stay_so_while_they_come(page):
    kept = page.run("""
        const view = new MarkdownView(document.createElement('div'));
        view.show('<think>one\\n\\ntwo', true);
        const [folded, one] = [view.element.firstChild, view.element.querySelector('p')];
        folded.open = true;
        view.show('<think>one\\n\\ntwo, three</think>\\n\\nSo', true);
        return folded === view.element.firstChild && folded.open && one === view.element.querySelector('p') &&
            [...view.element.children].map((each) => each.textContent).join(' ');""")
    assert kept == "Thoughtsonetwo, three So"


def test_what_is_complete_stays_as_it_is_while_the_rest_comes(page):
    kept = page.run("""
        const view = new MarkdownView(document.createElement('div'));
        view.show('one\\n\\n```py\\nx', true);
        const [paragraph, code] = view.element.children;
        view.show('one\\n\\n```py\\nx = 1\\ny', true);
        const grows = code === view.element.children[1] && code.textContent.endsWith('x = 1\\ny');
        view.show('one\\n\\n```py\\nx = 1\\ny\\n```\\n\\ntwo **thr', true);
        return grows && paragraph === view.element.children[0] && code === view.element.children[1];""")
    assert kept


def test_of_a_long_stream_the_last_block_alone_is_parsed_again(page):
    text = "\n\n".join([STREAMED] * 20)
    longest, as_whole = page.run("""
        const [text] = arguments;
        const [streamed, whole] = [0, 0].map(() => new MarkdownView(document.createElement('div')));
        const parse = markdown.block.parse;
        let longest = 0;
        markdown.block.parse = (source, ...others) => {
          longest = Math.max(longest, source.length);
          return parse.call(markdown.block, source, ...others);
        };
        for (let end = 1; end < text.length; end += 3) streamed.show(text.slice(0, end), true);
        markdown.block.parse = parse;
        [streamed, whole].forEach((view) => view.show(text, true));
        return [longest, streamed.element.innerHTML === whole.element.innerHTML];""", text)
    assert longest < len(STREAMED) and as_whole


@pytest.mark.parametrize("text", [
    "*a " * 20000, "**a" * 20000, "_*" * 20000, "` `` " * 20000, "[" * 50000, "[a](http://" * 10000, ">" * 50000, "> " * 20000,
    "\n".join(" " * i + "- x" for i in range(400)), "- " * 20000, "|" * 20000 + "\n" + "|-" * 20000 + "|", "- a" + "\n" * 50000 + "b",
    " " * 50000 + "x", "```" + " " * 20000 + "`", "- - " * 10000 + "x", "<think>" * 10000, "</think>" * 10000, "a\n" * 20000,
], ids=lambda text: text[:12].strip())
def test_texts_made_to_hang_a_reader_are_drawn(page, text):
    """A renderer that is quadratic in one of these takes minutes, one that recurses overflows its stack."""
    milliseconds = [page.milliseconds_to_draw(text[:len(text) // 4], whole=whole) + page.milliseconds_to_draw(text, whole=whole)
                    for whole in (True, False)]
    assert max(milliseconds) < 60000


@pytest.mark.parametrize("text, shown", [
    ("one **two** three *fo", "ur* five"),
    ("- one\n- two `thr", "ee`\n  - more\n- four"),
    ("| a | b |\n|---|---|\n| one | tw", "o |\n| three |"),
    ("# one `f` two thr", "ee"),
    ("> one\n> - two thr", "ee\n>\n> three"),
    ("one $x^2$ two $y", "$ three"),
    ("one two $x^2$ [tw", "o](https://x.y)"),
    ("```py\nfor one in 'two'\n# thr", "ee\n```\n\nfour"),
    ("1. one\n   ```py\n   for two\n   two", " = 1\n   ```\n2. two"),
    ("a[^1] b\n\n[^1]: one tw", "o\n\nc[^1]"),
])
def test_what_is_selected_stays_so_while_the_rest_comes(page, text, shown):
    """All is selected from "one" to the middle of the last "two"."""
    before, *after = page.run("""
        const [text, more] = arguments;
        const element = document.createElement('div');
        document.body.append(element);
        const view = new MarkdownView(element);
        view.show(text, true);
        const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        const texts = [];
        while (walker.nextNode()) texts.push(walker.currentNode);
        const last = texts.findLast((each) => each.data.includes('tw') && !each.data.includes('['));
        getSelection().setBaseAndExtent(texts.find((each) => each.data.includes('one')), 0, last, last.data.lastIndexOf('tw') + 2);
        const seen = [String(getSelection())];
        for (let end = 1; end <= more.length; ++end) {
          view.show(text + more.slice(0, end), true);
          seen.push(String(getSelection()));
        }
        view.show(text + more);
        seen.push(String(getSelection()));
        element.remove();
        return seen;""", text, shown)
    assert "one" in before and before.endswith("tw") and set(after) == {before}
