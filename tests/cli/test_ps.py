"""`pagoda ps` asks servers what they serve: those that answer have a row, the others a line of why."""

import pathlib
import sys

import pytest
from pagoda_command import pagoda

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from fake_server import FakeServer  # noqa: E402


@pytest.fixture
def server():
    fake = FakeServer(api_key="K")
    yield fake
    fake.close()


def test_a_row_for_each(server):
    head, row, again = pagoda("ps", server.url, server.url + "/v1", "--api-key", "K").stdout.splitlines()
    assert head.split() == ["MODEL", "DEVICE", "CONTEXT", "REQUESTS", "URL"]
    assert row == again and row.split()[-1] == server.url
    assert "0 of " in row
    assert pagoda("ps", server.url, PAGODA_API_KEY="K").stdout.splitlines() == [head, row]


def test_the_others_are_told_of(server):
    assert "api key" in pagoda("ps", server.url, code=1).stderr.lower()
    done = pagoda("ps", "http://127.0.0.1:1", server.url, "--api-key", "K", code=1)
    assert "127.0.0.1:1" in done.stderr and len(done.stdout.splitlines()) == 2
    assert "expected http://HOST" in pagoda("ps", "ftp://a", code=2).stderr
