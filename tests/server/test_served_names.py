"""Where `pagoda serve` listens and what it calls its model, as it was started from a shell."""

import errno
import json
import os
import re
import socket
import subprocess
import urllib.request

import pytest
from pagoda_server import PAGODA, TINY, PagodaServer

COMMIT = "a" * 40


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with one pulled model, hf:some/model."""
    repo = tmp_path / "hf/some/model"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs/main").write_text(COMMIT)
    os.symlink(TINY, repo / COMMIT)
    monkeypatch.setenv("PAGODA_MODEL_DIR", str(tmp_path))


def complete(server, model):
    return server.post("/v1/completions", {"model": model, "prompt": [5, 6], "max_tokens": 1})


def listed(server):
    with urllib.request.urlopen(server.url + "/v1/models", timeout=30) as answer:
        return [model["id"] for model in json.load(answer)["data"]]


def test_the_typed_name_and_the_files_serve_alike(tmp_path):
    link = tmp_path / "typed"
    os.symlink(TINY, link)
    server = PagodaServer(link)
    try:
        assert listed(server) == ["typed", str(link)]
        for name in listed(server):
            status, answer = complete(server, name)
            assert status == 200 and answer["model"] == name
        assert complete(server, "other")[0] == 404
    finally:
        server.close()


def test_a_pulled_model_has_its_own_name_not_its_commits(store):
    server = PagodaServer("hf:some/model")
    try:
        assert listed(server) == ["some/model"]
        assert complete(server, "some/model")[0] == 200
        assert complete(server, COMMIT)[0] == 404
    finally:
        server.close()


def test_a_given_name_replaces_both():
    server = PagodaServer(served_model_name="mine")
    try:
        assert listed(server) == ["mine"]
        assert complete(server, TINY.name)[0] == 404
    finally:
        server.close()


def has_ipv6_loopback():
    with socket.socket(socket.AF_INET6) as probe:
        return probe.connect_ex(("::1", 1)) == errno.ECONNREFUSED


def test_it_listens_on_an_ipv6_address_and_says_so():
    if not has_ipv6_loopback():
        command = [PAGODA, "serve", TINY, "--host", "::1", "--port", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and "::1" in done.stderr
        return
    server = PagodaServer(host="::1", url_host="[::1]")
    try:
        assert re.search(r"listening on http://\[::1\]:\d+", server.log.read_text())
        assert complete(server, TINY.name)[0] == 200
    finally:
        server.close()
