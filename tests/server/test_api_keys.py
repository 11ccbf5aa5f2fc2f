"""Keys with names: who asked stands in the log, and no key and no digest of one stands anywhere."""

import hashlib
import json
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


def ask(server, path, key, body=None):
    """The answer's status and text."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(server.url + path, data, headers), timeout=HANGS_AFTER_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def ask_all(server):
    """Asks with every key, rightly and wrongly; what /metrics says then."""
    for key in (OLD, NEW, NAMELESS):
        assert ask(server, "/v1/completions", key, {"prompt": [5, 6, 7], "max_tokens": 1})[0] == 200
    assert ask(server, "/v1/nothing", NEW)[0] == 404
    for wrong in (NEW + "x", digest_of(NEW), "sha256:" + digest_of(NEW), "alice"):
        assert ask(server, "/v1/models", wrong)[0] == 401
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
    asked = [line for line in log.splitlines() if "[access]" in line and "/health" not in line]
    assert [line.endswith(" client=alice") for line in asked] == [True, True, False, True] + 5 * [False]
    assert log.count("client=") == 3
    assert_tells_no_key(log + metrics)
    assert "alice" not in metrics


def test_a_line_in_json_has_the_name_as_a_field(key_file):
    server = PagodaServer(api_key_file=key_file, log_format="json")
    metrics = ask_all(server)
    server.close()
    log = server.log.read_text()
    lines = [line for line in map(json.loads, log.splitlines()) if line.get("path", "/health") != "/health"]
    assert [line.get("client") for line in lines] == ["alice", "alice", None, "alice"] + 5 * [None]
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
