"""Every field of every request at the bound that /openapi.json states, and one past it: an answer in words, and little memory."""

import json
import urllib.error
import urllib.request

import pytest
from field_bounds import PATHS, further_cases, header_cases, problem, stated_cases
from raw_connection import RawConnection
from whole_schemas import with_whole_schemas

MAX_MEMORY_BYTES = 300e6  # over what the server takes at rest


def post(server, path, body):
    """The status, and what is said of an error."""
    request = urllib.request.Request(server.url + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            answer.read()
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["message"]


@pytest.mark.parametrize("path", PATHS)
def test_each_field_at_its_bound_and_past_it(server, path):
    with urllib.request.urlopen(server.url + "/openapi.json") as answer:
        document = with_whole_schemas(json.load(answer))
    at_rest = server.resident_bytes()
    sent = set()
    for case in stated_cases(document, path):
        assert not problem(case, *post(server, path, case.body))
        sent.add(case.name)
    assert len(sent) > {"/v1/embeddings": 3, "/tokenize": 1, "/detokenize": 0}.get(path, 30)
    assert server.resident_bytes() < at_rest + MAX_MEMORY_BYTES


@pytest.mark.parametrize("path", PATHS)
def test_what_no_schema_states_at_its_bound_and_past_it(server, path):
    at_rest = server.resident_bytes()
    for case in further_cases(path):
        status, error = post(server, path, case.body)
        assert not problem(case, status, error)
        assert case.is_past or status == 200 or "context length" in error, f"{case.name}: {status} {error}"
    assert server.resident_bytes() < at_rest + MAX_MEMORY_BYTES


@pytest.mark.parametrize("name, request_bytes, is_past", list(header_cases()))
def test_a_header_at_its_bound_and_past_it(server, name, request_bytes, is_past):
    connection = RawConnection(server.port)
    connection.send(request_bytes)
    assert connection.read_head()[0] == (431 if is_past else 200), name
    connection.close()


def test_parts_of_a_message_are_counted(server):
    case = next(case for case in further_cases("/v1/chat/completions") if case.name == "parts" and case.is_past)
    status, error = post(server, "/v1/chat/completions", case.body)
    assert status == 400 and "got 4097" in error
