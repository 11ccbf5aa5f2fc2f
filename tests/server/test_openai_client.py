"""The official Python client against pagoda_fake_server, by HTTP, by TLS and by a Unix socket.

Nothing here asks what an answer says, only that client and server understand each other.
"""

import struct

import openai
import pytest
from fake_server import FakeServer

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Name three colours."}]


@pytest.fixture
def client(reached):
    url, http_client = reached
    return openai.OpenAI(base_url=url + "/v1", api_key="none", http_client=http_client, max_retries=0)


@pytest.fixture
def model(client):
    return client.models.list().data[0].id


def test_models(client, model):
    assert client.models.retrieve(model).id == model
    assert client.models.retrieve(model).max_model_len > 0
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("no-such-model")
    assert caught.value.code == "model_not_found"


def test_completion(client, model):
    answer = client.completions.create(model=model, prompt="One, two,", max_tokens=5, temperature=0, logprobs=2)
    choice = answer.choices[0]
    assert answer.object == "text_completion" and answer.model == model
    assert choice.finish_reason in ("length", "stop")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    num_tokens = answer.usage.completion_tokens
    assert 1 <= num_tokens <= 5
    logprobs = choice.logprobs
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.text_offset) == num_tokens
    assert all(value <= 0 for value in logprobs.token_logprobs)
    assert all(2 <= len(top) <= 3 for top in logprobs.top_logprobs)


def test_several_prompts_and_samples(client, model):
    answer = client.completions.create(model=model, prompt=["A", "B"], n=2, max_tokens=3, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]


def test_completion_stream_equals_the_whole(client, model):
    arguments = {"model": model, "prompt": "Roses are red,", "max_tokens": 12, "temperature": 0}
    whole = client.completions.create(**arguments)
    text, reason = "", None
    for chunk in client.completions.create(**arguments, stream=True):
        text += chunk.choices[0].text
        reason = chunk.choices[0].finish_reason or reason
    assert (text, reason) == (whole.choices[0].text, whole.choices[0].finish_reason)


def test_chat(client, model):
    answer = client.chat.completions.create(
        model=model, messages=CHAT, max_completion_tokens=8, temperature=0, logprobs=True, top_logprobs=3)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content
    content = choice.logprobs.content
    assert len(content) == answer.usage.completion_tokens
    assert all(len(place.top_logprobs) == 3 for place in content)
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0


def test_chat_stream_with_usage(client, model):
    arguments = {"model": model, "messages": CHAT, "max_tokens": 8, "temperature": 0}
    whole = client.chat.completions.create(**arguments)
    chunks = list(client.chat.completions.create(**arguments, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == whole.choices[0].finish_reason
    assert chunks[-1].choices == [] and chunks[-1].usage == whole.usage
    assert all(chunk.usage is None for chunk in chunks[:-1])


def as_float32(numbers):
    return list(struct.unpack(f"{len(numbers)}f", struct.pack(f"{len(numbers)}f", *numbers)))


def test_embeddings(client, model):
    texts = ["One, two,", "Roses are red,"]
    whole = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert whole.object == "list" and whole.model == model
    assert [one.index for one in whole.data] == [0, 1]
    assert whole.usage.total_tokens == whole.usage.prompt_tokens > 0
    # The client asks for base64 by itself, and decodes it.
    packed = client.embeddings.create(model=model, input=texts)
    assert [one.embedding for one in packed.data] == [as_float32(one.embedding) for one in whole.data]
    single = client.embeddings.create(model=model, input=texts[0])
    assert single.data[0].embedding == packed.data[0].embedding
    assert sum(number * number for number in single.data[0].embedding) == pytest.approx(1, abs=1e-4)


def test_embeddings_of_token_ids(client, model):
    lists = [[5, 6, 7], [8, 9]]
    several = client.embeddings.create(model=model, input=lists)
    assert several.usage.prompt_tokens == 5
    for ids, one in zip(lists, several.data):
        assert client.embeddings.create(model=model, input=ids).data[0].embedding == one.embedding


def test_embeddings_of_fewer_dimensions(client, model):
    whole = client.embeddings.create(model=model, input="One").data[0].embedding
    cut = client.embeddings.create(model=model, input="One", dimensions=4).data[0].embedding
    length = sum(number * number for number in whole[:4]) ** 0.5
    assert cut == pytest.approx([number / length for number in whole[:4]], abs=1e-6)
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model=model, input="One", dimensions=len(whole) + 1)
    assert caught.value.param == "dimensions"


def test_vllms_fields(client, model):
    answer = client.completions.create(
        model=model, prompt="x", max_tokens=4,
        extra_body={"ignore_eos": True, "min_tokens": 4, "top_k": 5, "min_p": 0.1, "return_token_ids": True,
                    "repetition_penalty": 1.1, "skip_special_tokens": False, "priority": 1, "cache_salt": "salt"})
    assert len(answer.choices[0].token_ids) == 4
    assert answer.choices[0].prompt_token_ids
    assert answer.choices[0].finish_reason == "length"


def test_a_seed_repeats_itself(client, model):
    texts = {client.completions.create(model=model, prompt="Once", max_tokens=12, temperature=1.0, seed=11).choices[0].text
             for _ in range(2)}
    assert len(texts) == 1


def test_a_drawn_seed_is_told_and_repeats_the_answer(client, model):
    def ask(**seed):
        return client.chat.completions.with_raw_response.create(
            model=model, messages=[{"role": "user", "content": "Once"}], max_tokens=12, temperature=1.0, n=2, **seed)

    drawn = ask()
    seed = int(drawn.headers["x-seed"])
    again = ask(seed=seed)
    assert int(again.headers["x-seed"]) == seed
    assert [choice.message.content for choice in again.parse().choices] == [
        choice.message.content for choice in drawn.parse().choices]
    assert int(ask().headers["x-seed"]) != seed


@pytest.mark.parametrize(
    "arguments, param",
    [({"temperature": -1}, "temperature"), ({"max_tokens": -5}, "max_tokens"), ({"top_p": 2}, "top_p"),
     ({"logit_bias": {"5": 101}}, "logit_bias"), ({"n": 0}, "n"), ({"max_tokens": 2**63}, "max_tokens"),
     ({"extra_body": {"top_k": "many"}}, "top_k")])
def test_bad_requests(client, model, arguments, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=model, prompt="x", **arguments)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_what_is_not_supported_is_named(client, model):
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=image)
    assert "images are not read" in caught.value.message
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=model, messages=CHAT, response_format={"type": "grammar"})
    assert caught.value.param == "response_format"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="no-such-model", messages=CHAT)


def test_too_long_a_prompt(client, model):
    limit = client.models.retrieve(model).max_model_len
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model=model, prompt=[5] * limit)
    assert caught.value.code == "context_length_exceeded"
    assert f"maximum context length is {limit} tokens" in caught.value.message


def test_api_key():
    fake = FakeServer(api_key="right")
    try:
        with pytest.raises(openai.AuthenticationError) as caught:
            openai.OpenAI(base_url=fake.url + "/v1", api_key="wrong", max_retries=0).models.list()
        assert caught.value.code == "invalid_api_key"
        assert openai.OpenAI(base_url=fake.url + "/v1", api_key="right").models.list().data
    finally:
        fake.close()
