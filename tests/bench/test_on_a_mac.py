"""bench/on_a_mac.py with a fake Pagoda and fake peers: what it runs, in which order, and what the file keeps."""

import os
import pathlib
import subprocess
import sys

import on_a_mac
import pytest

SCRIPT = pathlib.Path(on_a_mac.__file__)
HANGS_AFTER_S = 60
PEER = '#!/bin/sh\necho "NAME says: $*"\n'
PAGODA = """#!/bin/sh
case "$*" in
  "info smollm2") echo /models/small.gguf ;;
  *throughput*) echo "no such device" >&2; exit 3 ;;
  *) echo "pagoda says: $*" ;;
esac
"""


@pytest.fixture
def tools(tmp_path):
    """A folder for PATH, with nothing but a Pagoda that answers at once."""
    folder = tmp_path / "tools"
    folder.mkdir()
    add_tool(folder, "pagoda", PAGODA)
    return folder


def add_tool(folder, name, text=PEER):
    path = folder / name
    path.write_text(text.replace("NAME", name))
    path.chmod(0o755)


def report_of(tools, *flags, code=0):
    """The file, which is what was printed but for the last line."""
    out = tools.parent / "report.txt"
    done = subprocess.run([sys.executable, SCRIPT, tools / "pagoda", "--out", out, *map(str, flags)], capture_output=True, text=True,
                          timeout=HANGS_AFTER_S, check=False, env={**os.environ, "PATH": str(tools)})
    assert done.returncode == code, done.stderr
    text = out.read_text()
    assert done.stdout.startswith(text) and f"attach {out} to an issue" in done.stdout[len(text):]
    return text


def commands_in(text):
    return [pathlib.Path(line[2:].split()[0]).name + " " + " ".join(line.split()[2:]) for line in text.splitlines()
            if line.startswith("$ ")]


def test_all_of_pagoda_is_run_and_absent_peers_are_named(tools):
    text = report_of(tools, "--turns", 1)
    for said in ("--version", "info --device mlx", "bench machine --device mlx",
                 "bench latency smollm2 --device mlx --input-len 512 --output-len 128 --batch-size 1",
                 "bench latency smollm2 --device mlx --input-len 512 --output-len 128 --batch-size 8"):
        assert f"pagoda says: {said}\n" in text
    assert text.count("pagoda says: bench machine") == 2  # before and after
    assert text.count("\nnot installed\n") == 3 and text.count("\nnot run: --mlx-model names no folder\n") == 2


def test_a_command_that_fails_leaves_its_error_and_the_rest_goes_on(tools):
    text = report_of(tools, "--turns", 1)
    failed = text.index("no such device\nfailed: exit 3\n")
    assert text.index("bench machine", failed) > 0 and text.endswith("\nCommands that failed: 1\n")


def test_without_a_binary_every_command_has_its_error(tools):
    (tools / "pagoda").unlink()
    text = report_of(tools, "--turns", 1)
    assert text.count("failed: [Errno 2]") == 8 == text.count("$ ") - text.count("\nnot ")


def test_engines_take_turns(tools):
    for name in ("llama-bench", "llama-batched-bench", "mlx_lm.benchmark"):
        add_tool(tools, name)
    text = report_of(tools, "--turns", 2, "--mlx-model", "folder")
    engines = [command for command in commands_in(text) if "info" not in command]
    turn = ["pagoda bench latency smollm2", "llama-bench -m /models/small.gguf -p 512", "llama-bench -m /models/small.gguf -p 0",
            "pagoda bench latency folder", "mlx_lm.benchmark --model folder -p 512 -g 128 -n 3",
            "pagoda bench latency smollm2", "llama-batched-bench -m /models/small.gguf -c 5120",
            "pagoda bench latency folder", "mlx_lm.benchmark --model folder -p 512 -g 128 -n 3 -b 8"]
    expected = ["pagoda --version", "pagoda bench machine", *turn, *turn, "pagoda bench throughput", "pagoda bench machine"]
    assert len(engines) == len(expected)
    for command, beginning in zip(engines, expected):
        assert command.startswith(beginning)
    assert "llama-batched-bench says: -m /models/small.gguf" in text and "not installed" not in text


def test_the_home_folder_is_nobodys_business(tmp_path, capsys):
    report = on_a_mac.Report(tmp_path / "report")
    report.run(on_a_mac.Run(["echo", f"{pathlib.Path.home()}/models/small.gguf"]))
    assert "\n~/models/small.gguf\n" in (tmp_path / "report").read_text() == capsys.readouterr().out


def test_the_makefile_asks_for_it_on_mlx_alone():
    def asked(device):
        return subprocess.run(["make", "-n", "bench", f"DEVICE={device}"], capture_output=True, text=True, check=False,
                              cwd=SCRIPT.parent.parent, timeout=HANGS_AFTER_S).stdout

    assert "on_a_mac.py" in asked("mlx") and "vs_llama_cpp.py" not in asked("mlx")
    assert "on_a_mac.py" not in asked("cpu") and "vs_llama_cpp.py" in asked("cpu")
