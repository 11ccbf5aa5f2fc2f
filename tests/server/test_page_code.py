"""Colours of code on the page: what is told apart, and that code which grows is not looked at again."""

import pytest

PAINT = """
const element = document.createElement('code');
const [language, codes] = arguments;
return codes.map((code) => {
  paint(element, language, code);
  return [...element.childNodes].reduce((parts, {className, textContent}) => {
    if (!className && parts.length && !parts.at(-1)[0]) parts.at(-1)[1] += textContent;
    else parts.push([className ?? '', textContent]);
    return parts;
  }, []);
});
"""

SAMPLES = {
    "python": ('@mark\ndef f(x: Tall = 1.5e3):\n    """Long\n    # text"""\n    return f"a {x}" + \'b\'  # "so"\n',
               {"call": ["@mark", "f"], "keyword": ["def", "return"], "type": ["Tall"], "number": ["1.5e3"],
                "string": ['"""Long\n    # text"""', 'f"a {x}"', "'b'"], "comment": ['# "so"']}),
    "tsx": ('// it\'s\nconst r = /["\']/g / 2; f(`a\n${b}`, null); /* x */', {
        "comment": ["// it's", "/* x */"], "keyword": ["const"], "string": ["/[\"']/g", "`a\n${b}`"], "number": ["2", "null"], "call": ["f"]}),
    "rust": ("fn f<'a>(x: &'a str) { println!(\"\\\"hi\", 'c'); }", {
        "keyword": ["fn", "str"], "type": ["'a", "'a"], "call": ["println"], "string": ['"\\"hi"', "'c'"]}),
    "C++": ("#include <a>\nint main() { return 0x1f; } // \"", {
        "keyword": ["#include", "int", "return"], "call": ["main"], "number": ["0x1f"], "comment": ['// "']}),
    "sh": ("$ sudo apt install -y \"$x\" | grep 'a' # b\nfor i in *; do echo ${i}#; done", {
        "call": ["sudo", "apt", "grep"], "type": ["-y", "${i}"], "string": ['"$x"', "'a'"], "comment": ["# b"], "keyword": ["for", "in", "do", "done"]}),
    "json": ('{"a b": 1.5, "c": [true, "x:"]}', {"type": ['"a b"', '"c"'], "number": ["1.5", "true"], "string": ['"x:"']}),
    "yaml": ("a: 1\n- b.c: 'd' # e\n", {"type": ["a", "b.c"], "number": ["1"], "string": ["'d'"], "comment": ["# e"]}),
    "toml": ('[a.b]\nc = "d" # e', {"keyword": ["[a.b]"], "type": ["c"], "string": ['"d"'], "comment": ["# e"]}),
    "html": ('<!-- <a> --><a href="b">&amp; "d"</a>', {
        "comment": ["<!-- <a> -->"], "keyword": ["<a", ">", "</a", ">"], "type": ["href"], "string": ['"b"'], "number": ["&amp;"]}),
    "css": (".a:hover { color: #fff; margin: 1px }\n@media x {}", {
        "call": [".a"], "type": ["color", "margin"], "number": ["#fff", "1px"], "keyword": ["@media"]}),
    "sql": ("Select count(*) FROM t -- it's\nwhere a = 'x'", {
        "keyword": ["Select", "FROM", "where"], "call": ["count"], "comment": ["-- it's"], "string": ["'x'"]}),
    "diff": ("@@ 1 @@\n-a\n+b\n c", {"keyword": ["@@ 1 @@"], "removed": ["-a"], "added": ["+b"]}),
    "": ('x = "1"', {}), "constructor": ("if 1", {}),
}


@pytest.mark.parametrize("language", SAMPLES)
def test_code_has_colours_whole_and_as_it_comes(page, language):
    code, expected = SAMPLES[language]
    parts = page.run(PAINT, language, [code])[0]
    assert "".join(text for _, text in parts) == code
    told = {kind: [text for each, text in parts if each == kind] for kind, _ in parts if kind}
    assert told == expected
    grown = page.run(PAINT, language, [code[:end] for end in range(len(code) + 1)])
    anew = [page.run(PAINT, language, [code[:end]])[0] for end in range(0, len(code) + 1, 7)]
    assert grown[::7] == anew and grown[-1] == parts


def test_every_language_reads_its_patterns(page):
    """Each name too: one that leads nowhere would throw."""
    assert page.run("return [...NAMES.keys()].filter((name) => !lexerOf(name)?.kinds.length)") == []
    assert len(page.run("return Object.keys(LANGUAGES)")) == 29


def test_code_that_grows_keeps_what_it_has(page):
    """Nothing but the last line is looked at, and drawn, again; code that has become another is drawn anew."""
    kept = page.run("""
        const view = new MarkdownView(document.createElement('div'));
        view.show('```py\\nx = "1"\\nfor y', true);
        const code = view.element.querySelector('code');
        const [text, string] = code.childNodes;
        const pattern = lexerOf('py').pattern;
        const from = [];
        pattern.exec = (source) => { from.push(pattern.lastIndex); return RegExp.prototype.exec.call(pattern, source); };
        view.show('```py\\nx = "1"\\nfor y in', true);
        delete pattern.exec;
        const stays = code.childNodes[0] === text && code.childNodes[1] === string && Math.min(...from) >= 7;
        paint(code, 'py', 'y = 1');
        return [stays, code.innerHTML];""")
    assert kept == [True, 'y = <span class="number">1</span>']


HANGING = ["\"", "'\\", " ", "/*", "a", "-", "${", "$(", "a:", "- ", "`", "/[", "=/", "<!--", "a=", "#", "{-", "\\", "a\n", " \n", "r'"]


@pytest.mark.parametrize("piece", HANGING, ids=str.strip)
def test_code_made_to_hang_a_reader_has_colours(page, piece):
    slowest = page.run("""
        const [text] = arguments;
        return Object.keys(LANGUAGES).map((language) => {
          const start = performance.now();
          paint(document.createElement('code'), language, text);
          return [performance.now() - start, language];
        }).sort(([one], [other]) => other - one)[0];""", piece * (15000 // len(piece)) + "x")
    assert slowest[0] < 1000, slowest
