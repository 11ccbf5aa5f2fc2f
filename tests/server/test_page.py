"""The page at / in a real browser: a conversation, stopping, settings, errors, a phone's screen.

PAGODA_SCREENSHOTS names a folder for pictures of what was tested.
"""

import os
import pathlib
import shutil

import pytest
from fake_server import FakeServer
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-dev-shm-usage"]


@pytest.fixture(scope="module")
def slow_server():
    fake = FakeServer(token_s=0.01)
    yield fake
    fake.close()


@pytest.fixture
def browser(tmp_path):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for flag in FLAGS + [f"--user-data-dir={tmp_path}", "--window-size=1200,860"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    # A 401 or 404 is logged by the browser itself; anything else is a mistake of the page.
    problems = [entry for entry in driver.get_log("browser")
                if entry["level"] == "SEVERE" and "the server responded with a status" not in entry["message"]]
    driver.quit()
    assert problems == []


class Page:
    def __init__(self, driver, url):
        self.driver = driver
        driver.get(url)
        self.wait(lambda: self.text("#model") == "fake-model")

    def wait(self, condition, seconds=15):
        WebDriverWait(self.driver, seconds, poll_frequency=0.05).until(lambda _: condition())

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    def say(self, message):
        self.find("#input").send_keys(message, Keys.ENTER)

    def answers(self):
        return [element.text for element in self.all(".turn.assistant .text")]

    def wait_until_idle(self):
        self.wait(lambda: self.find("#send").is_displayed() and not self.find("#stop").is_displayed())

    def picture(self, name):
        folder = os.environ.get("PAGODA_SCREENSHOTS")
        if folder:
            self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def color_scheme(self, name):
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def phone(self):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True})


def test_streams_an_answer_with_its_figures(browser, slow_server):
    page = Page(browser, slow_server.url)
    page.picture("welcome")
    page.say("Tell me of pagodas")
    page.wait(lambda: page.answers() and page.answers()[0])
    partial = page.answers()[0]
    page.wait_until_idle()
    assert len(partial) < len(page.answers()[0])
    assert page.text(".turn.user .text") == "Tell me of pagodas"
    assert page.text(".turn.assistant strong") == "tiered tower"
    assert [item.text for item in page.all(".turn.assistant li")] == [
        "It began as a stupa in India.", "Many are built of wood, brick or stone."]
    assert 'print("<eave>", tier)' in page.text(".turn.assistant pre code")
    assert page.answers()[0].endswith("再见 👋")
    facts = page.text(".facts")
    assert "tokens/s" in facts and "first token" in facts and "tokens" in facts
    page.picture("answer-light")
    page.color_scheme("dark")
    page.picture("answer-dark")


def test_sends_the_whole_conversation(browser, server):
    page = Page(browser, server.url)
    for message in ["say one", "say two"]:
        page.say(message)
        page.wait_until_idle()
    assert page.answers() == ["one", "two"]
    sent = browser.execute_script("return messages")
    assert [(message["role"], message["content"]) for message in sent] == [
        ("user", "say one"), ("assistant", "one"), ("user", "say two"), ("assistant", "two")]
    page.find("#new").click()
    assert page.answers() == []
    assert page.find("#welcome").is_displayed()


def test_shift_enter_starts_a_line(browser, server):
    page = Page(browser, server.url)
    page.find("#input").send_keys("first", Keys.SHIFT, Keys.ENTER)
    assert page.all(".turn") == []
    assert page.find("#input").get_property("value") == "first\n"


@pytest.mark.parametrize("way", ["button", "escape"])
def test_stops_a_long_answer(browser, slow_server, way):
    page = Page(browser, slow_server.url)
    cancelled = slow_server.num_cancelled()
    page.say("count 10000")
    page.wait(lambda: page.answers() and "12" in page.answers()[0])
    if way == "button":
        page.find("#stop").click()
    else:
        page.find("#input").send_keys(Keys.ESCAPE)
    page.wait_until_idle()
    assert "stopped" in page.text(".facts") and "tokens/s" in page.text(".facts")
    page.wait(lambda: slow_server.num_cancelled() == cancelled + 1)
    page.say("say still here")
    page.wait_until_idle()
    assert page.answers()[1] == "still here"


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


def test_text_of_the_model_is_never_html(browser, server):
    page = Page(browser, server.url)
    page.say("say <img src=x onerror=document.title='broken'> **<b>bold</b>** [link](javascript:alert(1)) `<i>`")
    page.wait_until_idle()
    assert "<img src=x" in page.answers()[0] and "<b>bold</b>" in page.answers()[0]
    assert page.all(".turn img, .turn b, .turn i, .turn a") == []
    assert browser.title == "Pagoda"


def test_shows_failures_kindly(browser, server):
    page = Page(browser, server.url)
    page.say("fail the roof leaks")
    page.wait_until_idle()
    assert page.answers() == ["So far"]
    assert page.text(".trouble") == "the roof leaks"
    page.say("say " + "long " * 500)
    page.wait_until_idle()
    assert "longer than the model can read" in page.all(".trouble")[1].text
    page.picture("trouble")


def test_asks_for_the_api_key(browser):
    fake = FakeServer(api_key="secret")
    try:
        browser.get(fake.url)
        page = Page.__new__(Page)
        page.driver = browser
        page.say("say hello")
        page.wait(lambda: page.all(".trouble .link"))
        assert "API key" in page.text(".trouble")
        page.find(".trouble .link").click()
        page.find("#api-key").send_keys("secret")
        page.find("#settings-form .main").click()
        page.wait(lambda: page.text("#model") == "fake-model")
        page.find(".again").click()
        page.wait(lambda: page.answers() == ["hello"])
    finally:
        fake.close()


def test_fits_a_phone(browser, slow_server):
    page = Page(browser, slow_server.url)
    page.phone()
    page.say("Tell me of pagodas")
    page.wait(lambda: page.answers() and "python" in page.all(".turn.assistant")[0].text)
    page.picture("phone-streaming")
    page.wait_until_idle()
    overflow = browser.execute_script(
        "return [document.documentElement.scrollWidth, document.querySelector('main').scrollWidth]")
    assert max(overflow) <= 360
    for selector in ["#send", "#new", "#open-settings"]:
        size = page.find(selector).size
        assert size["width"] >= 44 and size["height"] >= 44, selector
    page.picture("phone")
    page.color_scheme("dark")
    page.find("#open-settings").click()
    page.picture("phone-settings")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
