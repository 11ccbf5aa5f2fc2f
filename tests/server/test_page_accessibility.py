"""axe-core finds nothing to say against the page: neither empty nor with a conversation, a dialog or an error, on phones and desks,
light and dark."""

import importlib.resources

import pytest
from page_driver import Page
from scripted_server import Refusal
from selenium.webdriver.common.keys import Keys

# The package has axe-core's file beside code for another driver, which is not used.
AXE = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
VIOLATIONS = """
const done = arguments[0];
const told = ({id, help, nodes}) => [id, help, ...nodes.map((node) => node.html + ': ' + node.failureSummary)].join('\\n');
axe.run().then(({violations, passes}) => done([violations.map(told), passes.length]), (error) => done([[String(error)], 0]));
"""
ANSWER = ("Then **I** answer, `so` and [there](https://example.org):\n\n# A title\n\n| a | b |\n"
          "|---|---|\n| 1 | 2 |\n\n- one\n  - two\n\n1. three\n\n> said\n\n```python\n# so\n@mark\nclass A(Base):\n    x = f(1, \"one\")\n```\n\n"
          "```diff\n-a\n+b\n```\n\nSo $x^2$[^1] and\n\n$$" + "a+" * 150 + "b$$\n\n[^1]: a note")


def expect_no_violations(page, what):
    """Runs with the rules for WCAG 2.2 A and AA and axe-core's own best practices, its default."""
    for scheme in ("light", "dark"):
        page.color_scheme(scheme)
        found, num_passes = page.driver.execute_async_script(AXE + VIOLATIONS)
        assert found == [], f"{what}, {scheme}"
        assert num_passes > 10, f"{what}, {scheme}"


@pytest.mark.parametrize("width", [320, 360, 390, 430, 768, 1280])
def test_a_conversation(browser, scripted, width):
    page = Page(browser, scripted.url)
    scripted.answers = [[{"reasoning_content": "First I think."}, ANSWER], Refusal(500, "it broke")]
    page.screen(width)
    expect_no_violations(page, "welcome")
    page.ask("Everything?")
    assert len(page.all(".turn.assistant :is(table, pre, .formula[tabindex])")) == 4
    page.find(".thought summary").click()
    expect_no_violations(page, "answer")
    page.ask("And more?")
    expect_no_violations(page, "failure")
    for name in ("settings", "export"):
        page.find(f"#open-{name}").click()
        page.run("$('more').open = true")
        expect_no_violations(page, name)
        page.find(f"#{name}").send_keys(Keys.ESCAPE)
        page.wait(lambda name=name: not page.find(f"#{name}").is_displayed())
    page.find(".turn.user .edit").click()
    expect_no_violations(page, "an edited question")
    page.find("#new").click()
    expect_no_violations(page, "earlier chats")
