"""Keys with names: who asked stands in the log, and no key and no digest of one stands anywhere."""

import hashlib
import json
import re
import urllib.error
import urllib.request

import pytest
from pagoda_server import PagodaServer
from waiting import HANGS_AFTER_S

OLD, NEW, NAMELESS = "an-old-secret", "a-new-secret", "a-nameless-secret"


def digest_of(key):
    return hashlib.sha256(key.encode()).hexdigest()


@pytest.fixture
def key_file(tmp_path):
    file = tmp_path / "keys.txt"
    file.write_text(f"# who asks\nalice {OLD}\nalice sha256:{digest_of(NEW)}\nsha256:{digest_of(NAMELESS)}\n")
    return file


def ask(server, path, key, body=None, request_id="any"):
    """The answer's status and text."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "X-Request-Id": request_id}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, data, headers), timeout=HANGS_AFTER_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


# What is asked with which key: the path, the status, and whose name the log shows.
ASKED = {
    "old": (OLD, "/v1/completions", 200, "alice"),
    "new": (NEW, "/v1/completions", 200, "alice"),
    "nameless": (NAMELESS, "/v1/completions", 200, None),
    "nowhere": (NEW, "/v1/nothing", 404, "alice"),
    "longer": (NEW + "x", "/v1/models", 401, None),
    "digest": (digest_of(NEW), "/v1/models", 401, None),
    "scheme": ("sha256:" + digest_of(NEW), "/v1/models", 401, None),
    "name": ("alice", "/v1/models", 401, None),
}
NAMES = {request_id: name for request_id, (_, _, _, name) in ASKED.items()}


def ask_all(server):
    """Asks all of it; what /metrics says then. Lines of the log may come in another order than the answers."""
    for request_id, (key, path, status, _) in ASKED.items():
        body = {"prompt": [5, 6, 7], "max_tokens": 1} if path == "/v1/completions" else None
        assert ask(server, path, key, body, request_id)[0] == status
    return ask(server, "/metrics", NEW)[1]


def assert_tells_no_key(text):
    for key in (OLD, NEW, NAMELESS):
        assert key not in text and digest_of(key) not in text


@pytest.mark.parametrize("level", ["info", "debug"])
def test_the_log_names_who_asked_and_shows_no_key(key_file, level):
    server = PagodaServer(api_key_file=key_file, log_level=level)
    metrics = ask_all(server)
    server.close()
    log = server.log.read_text()
    lines = re.findall(r"\[access\] .* bytes (\w+)(?: client=(\w+))?$", log, re.MULTILINE)
    assert {request_id: name or None for request_id, name in lines if request_id in NAMES} == NAMES
    assert log.count("client=") == 3
    assert_tells_no_key(log + metrics)
    assert "alice" not in metrics


def test_a_line_in_json_has_the_name_as_a_field(key_file):
    server = PagodaServer(api_key_file=key_file, log_format="json")
    metrics = ask_all(server)
    server.close()
    log = server.log.read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["request_id"]: line.get("client") for line in lines if line.get("request_id") in NAMES} == NAMES
    assert_tells_no_key(log + metrics)


def test_a_new_key_of_a_name_finds_what_the_old_one_stored(key_file):
    server = PagodaServer(api_key_file=key_file)
    prompt = list(range(5, 69))
    cached = []
    for key in (OLD, NEW, NAMELESS):
        answer = json.loads(ask(server, "/v1/completions", key, {"prompt": prompt, "max_tokens": 1})[1])
        cached.append(answer["usage"]["prompt_tokens_details"]["cached_tokens"])
    server.close()
    assert cached == [0, 48, 0]
