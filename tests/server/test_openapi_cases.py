"""What /openapi.json takes is answered, and what it does not take is refused: schemathesis makes up requests from the
document, right ones and wrong ones, with a seed that is always the same. PAGODA_OPENAPI_CASES: how many of an operation
(1250 are 5000 altogether; they outlast ctest's limit)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from fake_server import FakeServer
from waiting import HANGS_AFTER_S

HERE = pathlib.Path(__file__).parent
NUM_CASES = os.environ.get("PAGODA_OPENAPI_CASES", "25")
# Answers that end soon, because 128 samples of a whole context each may be asked for; and room for most prompts.
MAX_MODEL_LEN = 1024
# The log tells acceptance apart from a prompt that is too long and from lists that differ in length, which no schema can.
NOT_ASKED = "positive_data_acceptance"


def run_schemathesis(server, folder, *arguments):
    """The requests that it made, as openapi_case_log.py logs them; fails the test where one of its checks does."""
    log = folder / "cases.jsonl"
    command = [sys.executable, "-m", "schemathesis.cli", "run", server.url + "/openapi.json", "--seed", "1",
               "--request-timeout", str(HANGS_AFTER_S),
               "--continue-on-failure", "--no-shrink", "--checks", "all", "--exclude-checks", NOT_ASKED, *arguments]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "openapi_case_log", "PYTHONPATH": str(HERE), "PAGODA_CASE_LOG": str(log)}
    ended = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ended.returncode == 0, ended.stdout[-6000:]
    return [json.loads(line) for line in log.read_text().splitlines()]


def is_beyond_schemas(case):
    """By the message, which errors of every API have."""
    error = case.get("error", "")
    message = error if isinstance(error, str) else error["message"]
    is_of_a_tools_schema = "tools_" in message and "_arguments: #" in message  # a keyword that no grammar can follow
    return is_of_a_tools_schema or "maximum context length" in message or "one for each of text_1" in message


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    server = FakeServer(max_queue=4096, max_model_len=MAX_MODEL_LEN)
    made = run_schemathesis(server, tmp_path_factory.mktemp("cases"), "--phases", "fuzzing", "--max-examples", NUM_CASES)
    assert server.is_running()
    server.close()
    return made


def test_whatever_the_schemas_take_is_answered(cases):
    refused = [case for case in cases if case.get("valid") and case["status"] >= 400 and not is_beyond_schemas(case)]
    assert not refused, refused[:5]


def test_nothing_else_is_answered(cases):
    answered = [case for case in cases if case.get("valid") is False and case["status"] < 400]
    assert not answered, answered[:5]


def test_chats_that_the_schema_takes_reach_the_model(cases):
    chats = [case for case in cases if case["operation"] == "POST /v1/chat/completions" and case.get("valid")]
    reached = [case for case in chats if case["status"] == 200]
    assert len(chats) >= 0.4 * int(NUM_CASES) and len(reached) > 0.5 * len(chats)


def test_there_are_no_answers_of_5xx(cases):
    assert len(cases) >= 4 * int(NUM_CASES)
    assert not [case for case in cases if case["status"] >= 500]


def test_keys_are_asked_for_where_the_document_says_so(tmp_path):
    server = FakeServer(api_key="K")
    made = run_schemathesis(server, tmp_path, "-H", "Authorization: Bearer K", "--phases", "coverage",
                            "--include-path-regex", "(models|tokenize)$")
    assert any(case["status"] == 401 for case in made) and any(case["status"] == 200 for case in made)
    server.close()
