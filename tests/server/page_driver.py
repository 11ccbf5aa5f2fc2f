"""The page at / in a headless Chromium, as a user's hands and eyes. PAGODA_SCREENSHOTS names a folder for pictures of what was tested."""

import os
import pathlib
import shutil

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--host-resolver-rules=MAP *.lan 127.0.0.1"]
# A step of a page takes a second at most where the machine is quiet.
WAIT_S = 120


# Draws each of the texts one after the other into one view, and tells its HTML after each and how long all took.
DRAW = """
const [texts, whole] = arguments;
const element = document.createElement('div');
const view = new MarkdownView(element);
const htmls = [];
let milliseconds = 0;
texts.forEach((text, i) => {
  const start = performance.now();
  view.show(text, !whole || i < texts.length - 1);
  milliseconds += performance.now() - start;
  htmls.push(element.innerHTML);
});
return {htmls, milliseconds};
"""


def open_browser(profile):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    for flag in FLAGS + [f"--user-data-dir={profile}", "--window-size=1200,860"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def problems_of(driver):
    """What the page has done wrong. A 401 or 404 is logged by the browser itself."""
    return [entry for entry in driver.get_log("browser")
            if entry["level"] == "SEVERE" and "the server responded with a status" not in entry["message"]]


class Page:
    def __init__(self, driver, url, model="fake-model"):
        """Waits for the tab's chat and the model's name; for none where `model` is empty."""
        self.driver = driver
        driver.get(url)
        self.wait_until_chat_is_there()
        self.wait(lambda: not model or self.find("#model").get_property("textContent") == model)

    def wait(self, condition, seconds=WAIT_S):
        """Waits until `condition()` holds. What it looks at may be drawn anew meanwhile: then it looks again."""
        WebDriverWait(self.driver, seconds, poll_frequency=0.05,
                      ignored_exceptions=[StaleElementReferenceException]).until(lambda _: condition())

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.find(selector).text

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def draw(self, *texts, whole=True):
        """The HTML that Markdown becomes, after each text of a stream; the last is whole if `whole`."""
        return self.run(DRAW, texts, whole)["htmls"]

    def milliseconds_to_draw(self, *texts, whole=True):
        return self.run(DRAW, texts, whole)["milliseconds"]

    def say(self, message):
        self.find("#input").send_keys(message, Keys.ENTER)

    def ask(self, message):
        self.say(message)
        self.wait_until_idle()

    def answers(self):
        return [element.text for element in self.all(".turn.assistant .text")]

    def questions(self):
        return [element.text for element in self.all(".turn.user .text")]

    def wait_until_idle(self):
        self.wait(lambda: self.find("#send").is_displayed() and not self.find("#stop").is_displayed())

    def wait_until_chat_is_there(self):
        self.wait(lambda: self.find("#log").get_attribute("aria-busy") == "false")

    def reload(self):
        self.driver.refresh()
        self.wait_until_chat_is_there()
        self.wait(lambda: self.find("#model").get_property("textContent"))

    def picture(self, name):
        folder = os.environ.get("PAGODA_SCREENSHOTS")
        if folder:
            self.driver.save_screenshot(str(pathlib.Path(folder) / f"{name}.png"))

    def color_scheme(self, name):
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def screen(self, width, height=740):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
