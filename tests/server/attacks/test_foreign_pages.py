"""Pages from elsewhere in the browser of somebody who has a server: they neither use it nor read what it says."""

import http.server
import threading

import pytest
from fake_server import FakeServer
from page_driver import WAIT_S
from raw_connection import RawConnection
from selenium.webdriver.support.ui import WebDriverWait

EVIL = "http://evil.example"
# What a page may send anywhere without being asked first, and no type at all.
SIMPLE_TYPES = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]


def ask(server, headers, path="/v1/completions"):
    connection = RawConnection(server.port)
    connection.post(path, {"prompt": "say a"}, headers)
    answer = connection.read()
    connection.close()
    return answer


def head(server, request):
    connection = RawConnection(server.port)
    connection.send("\r\n".join(request).encode() + b"\r\n\r\n")
    answer = connection.read_head()
    connection.close()
    return answer


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"])
@pytest.mark.parametrize("content_type", SIMPLE_TYPES + ["application/json"])
def test_a_post_of_another_origin_is_refused(server, path, content_type):
    content = [f"Content-Type: {content_type}"] if content_type else []
    for said in (["Origin: " + EVIL], ["Origin: null"], ["Origin: " + EVIL, "Sec-Fetch-Site: cross-site"],
                 [f"Origin: http://localhost:{server.port + 1}", "Sec-Fetch-Site: same-site"]):
        status, answer = ask(server, said + content, path)
        assert status == 403 and "--allowed-origins" in answer["error"]["message"], said


def test_types_that_are_not_json_are_refused_and_curls_own_is_not(server):
    for content_type in SIMPLE_TYPES:
        status, answer = ask(server, [f"Content-Type: {content_type}"] if content_type else [])
        if content_type and content_type.startswith(("text/", "multipart/")):
            assert status == 415 and "expected application/json" in answer["error"]["message"]
        else:
            assert status == 200


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models", "/metrics"])
def test_a_name_that_was_made_to_lead_here_is_refused(server, path):
    status, headers = head(server, [f"GET {path} HTTP/1.1", f"Host: evil.example:{server.port}", "Sec-Fetch-Site: same-origin"])
    assert status == 403 and "content-security-policy" not in headers
    for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", "[::1]:8000", "192.168.1.7:8000"):
        assert head(server, [f"GET {path} HTTP/1.1", f"Host: {host}"])[0] == 200
    assert head(server, [f"GET {path} HTTP/1.0"])[0] == 200  # a probe


def test_the_refusal_of_a_name_says_what_to_do(server):
    connection = RawConnection(server.port)
    connection.send(b"GET /health HTTP/1.1\r\nHost: box.lan:8000\r\n\r\n")
    status, answer = connection.read()
    assert status == 403 and answer["error"]["message"] == (
        "Host: expected an address, localhost or a name given by --allowed-hosts, got box.lan:8000")
    connection.close()


def test_a_name_that_was_given_is_answered():
    fake = FakeServer(allowed_hosts="box.lan")
    try:
        assert head(fake, ["GET / HTTP/1.1", "Host: box.lan:8000"])[0] == 200
        # The page's own requests by that name, in a browser that says no more where no TLS is.
        own = ["Host: box.lan:8000", "Origin: http://box.lan:8000", "Access-Control-Request-Method: POST"]
        assert head(fake, ["OPTIONS /v1/completions HTTP/1.1", *own])[0] == 204
        assert head(fake, ["GET / HTTP/1.1", "Host: other.lan:8000"])[0] == 403
    finally:
        fake.close()


class BlankPage(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()


@pytest.fixture
def elsewhere():
    """A page of another origin."""
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BlankPage)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{other.server_port}"
    other.shutdown()
    other.server_close()


# Ends with the answer's text, or what the browser says instead.
SEND = """
const [url, mode, type, done] = arguments;
const body = type === null ? new Blob(['{"prompt": "say b"}']) : '{"prompt": "say b"}';
fetch(url + '/v1/completions', {method: 'POST', mode, body, headers: type === null ? {} : {'Content-Type': type}})
    .then((answer) => answer.text()).then(done, (error) => done(String(error)));
"""
PROMPTS = "pagoda:prompt_tokens_total"


def prompts_read(server):
    connection = RawConnection(server.port)
    connection.send(b"GET /metrics HTTP/1.0\r\n\r\n")
    _, headers = connection.read_head()
    lines = [connection.read_line().decode() for _ in range(10_000)]
    connection.close()
    return next(line for line in lines if line.startswith(PROMPTS + "{"))


def test_a_browser_lets_a_foreign_page_do_nothing(server, chromium, elsewhere):
    before = prompts_read(server)
    chromium.get(elsewhere)
    for content_type in SIMPLE_TYPES:
        chromium.execute_async_script(SEND, server.url, "no-cors", content_type)
        assert "Failed to fetch" in chromium.execute_async_script(SEND, server.url, "cors", content_type)
    assert "Failed to fetch" in chromium.execute_async_script(SEND, server.url, "cors", "application/json")
    assert prompts_read(server) == before


def test_a_browser_lets_an_allowed_page_ask(chromium, elsewhere):
    fake = FakeServer(allowed_origins=elsewhere)
    try:
        chromium.get(elsewhere)
        assert '"text":"b"' in chromium.execute_async_script(SEND, fake.url, "cors", "application/json")
    finally:
        fake.close()


def test_a_link_from_elsewhere_shows_the_page(server, chromium, elsewhere):
    chromium.get(elsewhere)
    chromium.execute_script("location.href = arguments[0]", server.url + "/")
    WebDriverWait(chromium, WAIT_S).until(lambda driver: driver.title == "Pagoda")
