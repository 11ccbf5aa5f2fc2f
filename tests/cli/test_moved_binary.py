"""The binary in another place: nothing that it loads lies in its build folder or in the project's Python environment."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
from pagoda_command import TINY

BINARY = pathlib.Path(os.environ["PAGODA_BINARY"])
PROJECT = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]).resolve()


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moved")
    shutil.copy2(BINARY, folder)
    if (BINARY.parent / "lib").exists():
        shutil.copytree(BINARY.parent / "lib", folder / "lib")
    return folder / BINARY.name


def run(binary, *args, **environment):
    done = subprocess.run([binary, *map(str, args)], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL, cwd=binary.parent, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_loads_nothing_from_where_it_was_built(moved):
    assert run(moved, "--version").strip()
    if os.uname().sysname == "Darwin":
        loaded = run(moved, "--version", DYLD_PRINT_LIBRARIES="1")
    else:
        loaded = run(moved, LD_TRACE_LOADED_OBJECTS="1")
    assert str(PROJECT) not in loaded and ".venv" not in loaded and "not found" not in loaded


def test_it_answers_on_every_device_that_it_had(moved):
    devices = [line for line in run(moved, "info").splitlines() if line.startswith("devices:")][0].split()[1:]
    assert "cpu" in devices
    case = json.loads((TINY / "golden.json").read_text())["cases"][1]
    for device in devices:
        answer = json.loads(run(moved, "run", TINY, "--json", "--device", device, "--prompt-ids",
                                ",".join(map(str, case["prompt_ids"])), "--max-tokens", 7, "--temperature", 0, "--ignore-eos"))
        assert answer["token_ids"] == case["greedy_ids"][:7]
