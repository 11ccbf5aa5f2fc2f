"""What the prefix cache tells of others' prompts: to clients with other keys nothing, to those who share a scope whole blocks."""

import json
import urllib.request

import pytest
from pagoda_server import PagodaServer

BLOCK = 16  # tokens
SECRET = [5 + i % 200 for i in range(4 * BLOCK)]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text("victim\nattacker\n")
    served = PagodaServer(api_key_file=keys)
    yield served
    served.close()


def cached_tokens(server, key, prompt):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    body = json.dumps({"prompt": prompt, "max_tokens": 1}).encode()
    with urllib.request.urlopen(urllib.request.Request(server.url + "/v1/completions", body, headers)) as answer:
        return json.load(answer)["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_prompts_of_other_keys_are_not_told(server):
    assert cached_tokens(server, "victim", SECRET + [7]) == 0
    assert cached_tokens(server, "attacker", SECRET + [7]) == 0
    assert cached_tokens(server, "victim", SECRET + [7]) == len(SECRET)


def test_a_guess_is_not_confirmed_token_by_token(server):
    secret = [300 + i for i in range(3 * BLOCK)]
    cached_tokens(server, "victim", secret)
    # One more right token each time; the last of a prompt is always computed.
    told = [cached_tokens(server, "victim", secret[:known] + [9]) for known in range(BLOCK, 2 * BLOCK)]
    assert told == [BLOCK] * BLOCK
