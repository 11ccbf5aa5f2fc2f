"""Settings are kept, and sent where they are set: numbers, texts that end an answer, a JSON schema, thinking. What the
server tells of its model and of the context is shown."""

import json
import threading

import pytest
from page_driver import Page
from scripted_server import Usage


def test_settings_are_sent_and_kept(browser, server):
    page = Page(browser, server.url)
    page.find("#open-settings").click()
    page.picture("settings")
    page.find("#set-max_tokens").send_keys("3")
    page.find("#set-temperature").send_keys("0.7")
    page.find("#set-top_p").send_keys("7")  # out of range: marked, not sent
    page.find("#system").send_keys("Be brief.")
    assert not page.find("#set-top_p").get_property("validity")["valid"]
    page.find("#set-top_p").clear()
    page.find("#settings-form .main").click()
    browser.refresh()
    page.say("count 100")
    page.wait_until_idle()
    assert page.answers() == ["1 2"]
    assert "cut off at the token limit" in page.text(".facts")
    assert browser.execute_script("return settings") == {
        "max_tokens": 3, "temperature": 0.7, "system": "Be brief."}
    page.find("#open-settings").click()
    assert page.find("#set-temperature").get_property("value") == "0.7"
    page.find("#reset").click()
    assert browser.execute_script("return settings") == {}


NUMBERS = {"thinking_token_budget": 64, "dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 3, "dry_penalty_last_n": -1,
           "xtc_probability": 0.05, "xtc_threshold": 0.1}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
SENT = """
const real = window.fetch;
window.fetch = (url, options) => { if (options.body) window.sent = JSON.parse(options.body); return real(url, options); };
"""


def test_all_that_is_set_is_sent_and_taken(browser, server):
    page = Page(browser, server.url)
    page.screen(320)
    page.run(SENT)
    page.find("#open-settings").click()
    page.find("#more summary").click()
    for name, value in NUMBERS.items():
        page.find(f"#set-{name}").send_keys(str(value))
    page.find("#thinking option[value='off']").click()
    page.find("#stops").send_keys("END\n\\n\\n\nC:\\\\")
    page.find("#schema").send_keys(json.dumps(SCHEMA))
    assert page.run("return $('settings').scrollWidth") <= 320
    page.picture("more-settings-320")
    page.find("#settings-form .main").click()
    page.ask('say {"a": 1}')
    assert page.answers() == ['{"a": 1}']
    sent = page.run("return window.sent")
    assert sent == {**NUMBERS, "enable_thinking": False, "stop": ["END", "\n\n", "C:\\"], "stream": True, "messages": sent["messages"],
                    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
                    "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    page.reload()
    page.run(SENT)
    page.find("#open-settings").click()  # what is set is in sight
    assert page.find("#set-dry_base").is_displayed() and page.find("#thinking").get_property("value") == "off"
    page.find("#schema").send_keys("}")
    assert "no object of JSON" in page.text("#schema-trouble")
    page.find("#settings-form .main").click()
    page.ask("say more")
    assert "The JSON schema of the settings" in page.text(".trouble") and page.run("return window.sent") is None
    page.find("#open-settings").click()
    page.find("#reset").click()
    page.find("#settings-form .main").click()
    page.ask("say more")
    assert set(page.run("return window.sent")) == {"messages", "stream", "stream_options"}


def usage(num_tokens):
    return Usage(prompt_tokens=num_tokens - 1, completion_tokens=1, total_tokens=num_tokens)


def test_the_context_that_is_taken_is_shown(browser, scripted):
    page = Page(browser, scripted.url)
    page.screen(320)
    more = threading.Event()
    scripted.answers = [["One", usage(1024), more, usage(1030)], ["Two", usage(2000)], ["Three", usage(1500)]]
    assert not page.find("#context").is_displayed()
    page.say("First?")
    page.wait(lambda: page.text("#context") == "1,024 of 2,048 tokens of context")
    more.set()
    page.wait_until_idle()
    assert page.text("#context") == "1,030 of 2,048 tokens of context"
    meter = page.find("#context-meter")
    assert [meter.get_property(name) for name in ("value", "max", "high")] == [1030, 2048, pytest.approx(1740.8)]
    page.ask("Second?")
    assert page.text("#context") == "2,000 of 2,048 tokens of context: nearly full, a new chat has room"
    page.picture("context-320")
    page.reload()
    page.wait(lambda: page.text("#context").startswith("2,000 of 2,048"))
    page.find(".again").click()  # another branch takes less
    page.wait(lambda: page.text("#context").startswith("1,500 of 2,048"))
    page.wait_until_idle()
    page.find("#new").click()
    assert not page.find("#context").is_displayed()


def test_a_phone_has_the_models_name(browser, scripted):
    page = Page(browser, scripted.url)
    page.screen(320)
    for model, is_cut in {"SmolLM2-1.7B-Instruct-q4_k_m": False, "org/" + "long-name-" * 20: True}.items():
        scripted.model = model
        page.reload()
        seen, whole = page.run("return ['clientWidth', 'scrollWidth'].map((name) => $('model')[name])")
        assert (seen < whole) == is_cut and seen >= 280
        page.find("#open-settings").click()
        assert page.text("#model-facts") == f"{model}, up to 2048 tokens" and page.run("return $('settings').scrollWidth") <= 320
