"""Every sampling field over HTTP, by `pagoda serve` over the default model."""

import pytest

PROMPT = "Say the same thing again and again, and again, and again: the cat sat on the mat."


@pytest.fixture(scope="module")
def server(default_model):
    return default_model


def complete(server, **fields):
    body = {"prompt": PROMPT, "max_tokens": 40, "temperature": 0, "ignore_eos": True, "return_token_ids": True, **fields}
    status, answer = server.post("/v1/completions", body)
    assert status == 200, answer
    return answer["choices"][0]


def token_ids(server, text):
    _, answer = server.post("/tokenize", {"prompt": text, "add_special_tokens": False})
    return answer["tokens"]


def longest_repetition(ids):
    """The longest run of tokens that stands twice in `ids`."""
    longest = 0
    for end in range(1, len(ids)):
        for start in range(end):
            length = 0
            while length <= start and ids[start - length] == ids[end - length]:
                length += 1
            longest = max(longest, length)
    return longest


def test_allowed_tokens_and_biases(server):
    allowed = token_ids(server, " cat dog")
    assert set(complete(server, allowed_token_ids=allowed)["token_ids"]) <= set(allowed)
    dog = allowed[-1]
    biased = complete(server, allowed_token_ids=allowed, logit_bias={str(dog): 100})
    assert set(biased["token_ids"]) == {dog}
    banned = complete(server, allowed_token_ids=allowed, logit_bias={str(dog): False}, temperature=1, seed=3)
    assert dog not in banned["token_ids"]


def test_bad_words_never_stand_in_an_answer(server):
    plain = complete(server)["text"]
    words = [word.strip(".,:;!?\"") for word in plain.split()]
    word = max((word for word in words if word.isalpha()), key=len)
    answer = complete(server, bad_words=[word])
    assert f" {word}" not in answer["text"], (word, answer["text"])


def test_dry_ends_repetitions(server):
    plain = complete(server, max_tokens=120)["token_ids"]
    asked = {"dry_multiplier": 5, "dry_allowed_length": 2, "dry_sequence_breakers": []}
    dry = complete(server, max_tokens=120, **asked)["token_ids"]
    assert longest_repetition(dry) <= 4 < longest_repetition(plain)


@pytest.mark.parametrize("fields", [
    {"typical_p": 0.5}, {"xtc_probability": 1, "xtc_threshold": 0.05}, {"mirostat": 2, "mirostat_tau": 3},
    {"mirostat": 1, "mirostat_tau": 3},
    {"dynatemp_range": 0.5, "dynatemp_exponent": 2}, {"dry_multiplier": 0.8},
    {"frequency_penalty": 1, "repeat_last_n": 4}])
def test_a_method_changes_the_answer_and_its_seed_repeats_it(server, fields):
    plain = complete(server, temperature=1, seed=5)["token_ids"]
    first = complete(server, temperature=1, seed=5, **fields)["token_ids"]
    again = complete(server, temperature=1, seed=5, **fields)["token_ids"]
    assert first == again
    assert first != plain


def test_penalties_look_back_over_the_window(server):
    def ids(**fields):
        return complete(server, max_tokens=120, **fields)["token_ids"]

    near = ids(repetition_penalty=2, repeat_last_n=8)
    assert near != ids(repetition_penalty=2)
    assert near != ids()
    assert ids(repetition_penalty=2, repeat_last_n=0) == ids()
    assert ids(repetition_penalty=2, repeat_last_n=-1) == ids(repetition_penalty=2)


@pytest.mark.parametrize("path, answer_of, body_of", [
    ("/completion", "content", lambda fields: {"n_predict": 40, "temperature": 0} | fields),
    ("/api/generate", "response",
     lambda fields: {"raw": True, "stream": False, "options": {"num_predict": 40, "temperature": 0} | fields})])
def test_other_servers_have_the_window_too(server, path, answer_of, body_of):
    def text(**fields):
        status, answer = server.post(path, {"prompt": PROMPT} | body_of(fields))
        assert status == 200, answer
        return answer[answer_of]

    assert text(repeat_penalty=2.5, repeat_last_n=0) == text()
    assert text(repeat_penalty=2.5, repeat_last_n=8) != text()


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_holds_the_surprise(server, version):
    def surprise(**fields):
        answer = complete(server, temperature=1, seed=5, max_tokens=200, logprobs=0, **fields)
        return -sum(answer["logprobs"]["token_logprobs"]) / 200 / 0.6931

    low, high = surprise(mirostat=version, mirostat_tau=1), surprise(mirostat=version, mirostat_tau=5)
    assert low < 2 < 4 < high


@pytest.mark.parametrize("fields, param", [
    ({"logit_bias": {"49152": 1}}, "logit_bias"), ({"allowed_token_ids": [49152]}, "allowed_token_ids"),
    ({"mirostat": 3}, "mirostat"), ({"typical_p": 0}, "typical_p"), ({"dry_base": 0.9}, "dry_base")])
def test_out_of_range_is_a_400_that_names_the_field(server, fields, param):
    status, answer = server.post("/v1/completions", {"prompt": "x", **fields})
    assert status == 400, answer
    error = answer["error"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert param in error["message"]
