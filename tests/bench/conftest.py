"""What tests of benchmarks share: their modules, and a server of a tiny model."""

import os
import pathlib
import sys

import pytest

SOURCE = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE / "bench"))
from running_server import RunningServer, free_port  # noqa: E402


@pytest.fixture
def port(tmp_path):
    port = free_port()
    command = [os.environ["PAGODA_BINARY"], "serve", SOURCE / "tests/golden/data/tiny-llama", "--device", "cpu", "--threads",
               "1", "--port", port]
    with RunningServer(command, port, tmp_path / "log"):
        yield port
