"""The page for users who are not at the server's own address: on another machine by a name, and behind a proxy, below a path."""

import json
import urllib.request

import pytest
from fake_server import FakeServer
from openai import OpenAI
from page_driver import Page
from reverse_proxy import ReverseProxy

NAME = "box.lan"  # which the browser looks up nowhere but here


@pytest.fixture(scope="module")
def named():
    fake = FakeServer(allowed_hosts=NAME, root_path="/llm")
    yield fake
    fake.close()


# A browser says where a page is from where the proxy has TLS, or on the same machine: only then may the proxy change the Host.
@pytest.fixture(params=[(True, NAME), (True, "localhost"), (False, NAME), (False, "localhost")],
                ids=lambda how: f"{'path taken away' if how[0] else 'path kept'}, {'Host kept' if how[1] == NAME else 'Host changed'}")
def proxied(named, request):
    """The URL of the proxy's path."""
    strips, name = request.param
    proxy = ReverseProxy(named.port, "/llm", strips=strips, keeps_host=name == NAME)
    yield f"http://{name}:{proxy.port}/llm"
    proxy.close()


def talks(page):
    page.ask("say well")
    return page.answers() == ["well"]


def test_by_a_name_from_another_machine(named, browser):
    assert talks(Page(browser, f"http://{NAME}:{named.port}/"))


@pytest.mark.parametrize("end", ["/", ""])
def test_behind_a_proxy(proxied, browser, end):
    assert talks(Page(browser, proxied + end))


def test_clients_behind_a_proxy(proxied):
    url = proxied.replace(NAME, "localhost")  # only the browser knows the other
    client = OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    messages = [{"role": "user", "content": "say well"}]
    assert client.chat.completions.create(model="fake-model", messages=messages).choices[0].message.content == "well"
    chunks = client.chat.completions.create(model="fake-model", messages=messages, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "well"
    with urllib.request.urlopen(url + "/openapi.json") as answer:
        assert json.load(answer)["servers"] == [{"url": "/llm"}]
