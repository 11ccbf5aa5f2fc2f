"""Answers held to a grammar, by `pagoda serve` over the default model at temperature 1.

PAGODA_ANSWERS_PER_SCHEMA (3) says how many answers are drawn for each schema of json_schema_cases.py; a run by hand
takes 100. With -s it prints how each schema's answers ended.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import urllib.request

import jsonschema
import pytest
from json_schema_cases import CASES
from waiting import HANGS_AFTER_S

NUM_ANSWERS = int(os.environ.get("PAGODA_ANSWERS_PER_SCHEMA", "3"))
MAX_SAMPLES = 25  # of one request
TABLES = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "src/text/testdata"

# As pydantic describes it: no additionalProperties anywhere.
PERSON = {"type": "object", "title": "Person", "required": ["name", "age"], "properties": {
    "name": {"title": "Name", "type": "string"}, "age": {"title": "Age", "type": "integer"}}}
ORDER = {
    "$defs": {
        "Address": {"type": "object", "title": "Address", "required": ["street", "city"], "properties": {
            "street": {"title": "Street", "type": "string"}, "city": {"title": "City", "type": "string"}}},
        "Customer": {"type": "object", "title": "Customer", "required": ["name", "address"], "properties": {
            "name": {"title": "Name", "type": "string"}, "address": {"$ref": "#/$defs/Address"}}},
        "Item": {"type": "object", "title": "Item", "required": ["sku", "quantity", "price"], "properties": {
            "sku": {"title": "Sku", "type": "string"}, "quantity": {"title": "Quantity", "type": "integer"},
            "price": {"title": "Price", "type": "number"}}}},
    "type": "object", "title": "Order", "required": ["customer", "items"], "properties": {
        "customer": {"$ref": "#/$defs/Customer"},
        "items": {"type": "array", "title": "Items", "items": {"$ref": "#/$defs/Item"}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Note"}}}


@pytest.fixture(scope="module")
def server(default_model):
    return default_model


def ask(server, **fields):
    messages = [{"role": "user", "content": "Give me one example, as JSON: " + fields.pop("about", "anything")}]
    status, answer = server.post("/v1/chat/completions", {"messages": messages, "temperature": 1, "top_p": 1, **fields})
    assert status == 200, answer
    choices = sorted(answer["choices"], key=lambda choice: choice["index"])
    return [(choice["finish_reason"], choice["message"]["content"]) for choice in choices]


def as_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "case", "strict": True, "schema": schema}}


def check_answer(schema, text):
    value = json.loads(text)
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    validator.check_schema(schema)
    validator(schema).validate(value)


def draw_case(server, case, seed, count):
    """How `count` answers ended: (stop, length), each checked."""
    name, schema, max_tokens = case
    asked = {"about": name.replace("_", " "), "response_format": as_format(schema), "seed": seed, "n": count}
    answers = ask(server, max_tokens=max_tokens, **asked)
    for reason, text in answers:
        assert reason in ("stop", "length"), reason
        if reason == "stop":
            check_answer(schema, text)
    # The same draws with fewer tokens and with more: what is cut short is the beginning of what is valid.
    for (_, short), (_, whole) in zip(ask(server, max_tokens=5, **asked), answers):
        assert whole.startswith(short.rstrip("\ufffd")), (short, whole)
    if any(reason == "length" for reason, _ in answers):
        for (reason, long), (_, whole) in zip(ask(server, max_tokens=2 * max_tokens, **asked), answers):
            assert long.startswith(whole.rstrip("\ufffd")), (whole, long)
            if reason == "stop":
                check_answer(schema, long)
    num_stopped = sum(reason == "stop" for reason, _ in answers)
    return num_stopped, len(answers) - num_stopped


def test_answers_validate(server):
    jobs = [(case, seed, min(MAX_SAMPLES, NUM_ANSWERS - first))
            for case in CASES for seed, first in enumerate(range(0, NUM_ANSWERS, MAX_SAMPLES))]
    ends = {case[0]: [0, 0] for case in CASES}
    failures = []
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        drawn = [(case, pool.submit(draw_case, server, case, seed, count)) for case, seed, count in jobs]
        for (name, _, _), future in drawn:
            try:
                stopped, cut = future.result()
                ends[name][0] += stopped
                ends[name][1] += cut
            except (AssertionError, ValueError, jsonschema.ValidationError) as error:
                failures.append(f"{name}: {str(error)[:400]}")
    for name, (stopped, cut) in ends.items():
        print(f"{name:28} {stopped:4} stop {cut:4} length")
    assert not failures, "\n".join(failures)
    num_stopped = sum(stopped for stopped, _ in ends.values())
    num_answers = sum(map(sum, ends.values()))
    print(f"{len(CASES)} schemas, {num_answers} answers, {num_stopped / num_answers:.2%} stop")
    assert num_stopped >= 0.95 * num_answers
    assert len(CASES) >= 60


def test_json_object(server):
    for reason, text in ask(server, response_format={"type": "json_object"}, max_tokens=200, n=8, seed=1):
        if reason == "stop":
            assert isinstance(json.loads(text), dict)
        else:
            assert text.startswith("{")


def count_ends(server, schema, about, max_tokens):
    """Of twenty chats, seed by seed, how many end; those that do are valid."""
    def ends(seed):
        [(reason, text)] = ask(server, about=about, response_format=as_format(schema), max_tokens=max_tokens, seed=seed)
        if reason == "stop":
            check_answer(schema, text)
        return reason == "stop"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        num_ended = sum(pool.map(ends, range(20)))
    print(f"{schema['title']}: {num_ended} of 20 answers end")
    return num_ended


def test_objects_without_additional_properties_end(server):
    assert count_ends(server, PERSON, "a person with name and age", 256) == 20


def test_nested_models_end(server):
    assert count_ends(server, ORDER, "an order with its customer, the customer's address, its items and a note", 512) >= 15


def test_white_space_can_be_off(server):
    schema = {"type": "object", "required": ["a", "b"], "properties": {
        "a": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}, "minItems": 2, "maxItems": 4},
        "b": {"enum": [None, True]}}}

    def spaced(**fields):
        answers = ask(server, about="numbers", response_format=as_format(schema), max_tokens=64, n=8, **fields)
        assert all(reason == "stop" for reason, _ in answers)
        return [" " in text for _, text in answers]
    assert any(spaced())
    assert not any(spaced(structured_outputs={"disable_any_whitespace": True}))


@pytest.mark.parametrize("table", ["schema_keywords", "pydantic_schemas"])
def test_each_keyword_and_type_validates_or_is_refused(server, table):
    tables = json.loads((TABLES / f"{table}.json").read_text())

    def check(entry):
        schema = entry["schema"]
        body = {"messages": [{"role": "user", "content": "x"}], "temperature": 1, "seed": 1, "n": 2, "max_tokens": 32,
                "response_format": as_format(schema)}
        status, answer = server.post("/v1/chat/completions", body)
        assert (status == 400) == ("refused" in entry), (entry["name"], answer)
        if status == 400:
            assert entry["refused"] in answer["error"]["message"], (entry["name"], answer)
            return
        for choice in answer["choices"]:
            if choice["finish_reason"] == "stop":
                check_answer(schema, choice["message"]["content"])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(check, tables["counted"] + tables["more"]))


def test_json_object_is_held_to_its_schema(server):
    schema = {"properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["a"]}
    for reason, text in ask(server, response_format={"type": "json_object", "schema": schema}, max_tokens=64, n=8):
        assert reason == "stop" and set(json.loads(text)) == {"a"}, text


@pytest.mark.parametrize("fields, pattern", [
    ({"json_schema": {"enum": [1, "a"]}}, '1|"a"'),
    ({"json_schema": '{"enum": [1, "a"]}'}, '1|"a"'),
    ({"format": {"enum": [1, "a"]}}, '1|"a"'),
    ({"format": "json"}, r"(?s)\{.*\}"),
    ({"grammar": 'root ::= "a" | "b"'}, "a|b"),
    ({"ebnf": 'root ::= "a" | "b"'}, "a|b"),
    ({"regex": "[ab]{3}"}, "[ab]{3}"),
    ({"guided_json": {"enum": [1, "a"]}}, '1|"a"'),
    ({"guided_regex": "[ab]{3}"}, "[ab]{3}"),
    ({"guided_choice": ["yes", "no"]}, "yes|no"),
    ({"guided_grammar": "start: /[ab]{3}/"}, "[ab]{3}"),
])
def test_other_servers_names_are_taken(server, fields, pattern):
    for reason, text in ask(server, max_tokens=128, n=2, seed=2, **fields):
        assert reason == "length" or re.fullmatch(pattern, text), text


@pytest.mark.parametrize("constraint, pattern", [
    ({"regex": "[A-Z][a-z]{2,8}, [0-9]{1,2}"}, "[A-Z][a-z]{2,8}, [0-9]{1,2}"),
    ({"choice": ["positive", "negative", "positively"]}, "positive|negative|positively"),
    ({"grammar": 'start: term ("+" term)?\nterm: /[0-9]{1,3}/ | "(" start ")"'}, r"[0-9+()]+"),
    ({"json": {"enum": [1, "a"]}}, '1|"a"'),
    ({"json": '{"enum": [1, "a"]}'}, '1|"a"'),
    ({"json_object": True}, r"(?s)\{.*\}"),
])
def test_structured_outputs(server, constraint, pattern):
    answers = ask(server, structured_outputs=constraint, max_tokens=256, n=8, seed=2)
    assert any(reason == "stop" for reason, _ in answers)
    for reason, text in answers:
        assert reason == "length" or re.fullmatch(pattern, text), text


@pytest.mark.parametrize("fields, param, words", [
    ({"response_format": as_format({"type": "string", "minLenght": 3})}, "response_format", "minLenght"),
    ({"response_format": as_format({"properties": {"a": {"not": {"pattern": "b"}}}})}, "response_format",
     "#/properties/a"),
    ({"response_format": as_format(5)}, "response_format", "schema"),
    ({"response_format": {"type": "json_schema"}}, "response_format", "'response_format.schema': expected a JSON Schema"),
    ({"response_format": {"type": "xml"}}, "response_format", "xml"),
    ({"structured_outputs": {"regex": "(a"}}, "structured_outputs", "regex"),
    ({"structured_outputs": {"regex": ""}}, "structured_outputs", "empty"),
    ({"structured_outputs": {"regex": "[a-z]+"}, "allowed_token_ids": [0]}, "allowed_token_ids", "'structured_outputs'"),
    ({"response_format": as_format({"$ref": "#"})}, "response_format", "circle"),
    ({"structured_outputs": {"choice": []}}, "structured_outputs", "choice"),
    ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs", "one of"),
    ({"structured_outputs": {"structural_tag": "{}"}}, "structured_outputs", "structural_tag"),
    ({"structured_outputs": {"json": "{"}}, "structured_outputs", "JSON"),
    ({"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}}, "structured_outputs", "both"),
])
def test_what_is_wrong_is_a_400(server, fields, param, words):
    body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 4, **fields}
    status, answer = server.post("/v1/chat/completions", body)
    assert status == 400, answer
    assert answer["error"]["param"] == param and words in answer["error"]["message"]
    assert "\n" not in answer["error"]["message"]


def test_with_everything_else(server):
    """Greedy, seeds, log-probabilities, stop strings, min_tokens, ignore_eos, penalties, streams, completions."""
    format = as_format({"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {
        "type": "integer", "minimum": 10, "maximum": 99}}, "required": ["name", "age"], "additionalProperties": False})
    greedy = {"response_format": format, "temperature": 0, "max_tokens": 100}
    [(reason, text)] = ask(server, **greedy)
    assert reason == "stop" and list(json.loads(text)) == ["name", "age"]
    assert ask(server, **greedy, n=1, seed=7) == [(reason, text)]
    assert ask(server, **greedy, logprobs=True, top_logprobs=3) == [(reason, text)]
    # Where the grammar ends an answer, neither of these goes on.
    for further in ({"ignore_eos": True}, {"min_tokens": 90}):
        for reason, text in ask(server, response_format=format, max_tokens=100, n=4, seed=3, **further):
            assert reason == "stop" and list(json.loads(text)) == ["name", "age"]
    assert all(set(text) <= set("ab") and 3 <= len(text) for _, text in
               ask(server, structured_outputs={"regex": "[ab]+"}, max_tokens=20, min_tokens=3, n=4, seed=4))
    [(reason, text)] = ask(server, **greedy, stop=['"age"'])
    assert reason == "stop" and text.startswith("{") and '"age"' not in text
    for reason, text in ask(server, response_format=format, repetition_penalty=1.3, presence_penalty=1, top_k=40,
                            top_p=0.9, n=4, max_tokens=100, seed=5):
        assert reason == "stop" and list(json.loads(text)) == ["name", "age"]
    status, answer = server.post("/v1/completions", {"prompt": ["A", "B"], "n": 2, "max_tokens": 100,
                                                         "response_format": format})
    assert status == 200 and [list(json.loads(choice["text"])) for choice in answer["choices"]] == [["name", "age"]] * 4


def test_a_stream_is_the_same_text(server):
    body = {"messages": [{"role": "user", "content": "x"}], "seed": 5, "max_tokens": 100, "temperature": 1,
            "structured_outputs": {"regex": "[a-z]{1,5}( [a-z]{1,5}){1,5}"}}
    _, whole = server.post("/v1/chat/completions", body)
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps({**body, "stream": True}).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
        events = [json.loads(line[6:]) for line in answer.read().decode().splitlines()
                  if line.startswith("data: {")]
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
    assert text == whole["choices"][0]["message"]["content"]


def test_an_answer_does_not_depend_on_its_company(server):
    asked = {"response_format": as_format(CASES[-2][1]), "seed": 11, "max_tokens": 300}
    alone = ask(server, **asked)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        crowd = [pool.submit(ask, server, max_tokens=100, seed=seed, n=3) for seed in range(5)]
        assert pool.submit(ask, server, **asked).result() == alone
        for future in crowd:
            future.result()
