"""`pagoda pull` from a stand-in of the hub: what a repository has, what is chosen, and models that other commands fetch."""

import os
import pathlib
import pty
import subprocess
import sys

import pytest
from pagoda_command import HANGS_AFTER_S, PAGODA

HUB = pathlib.Path(__file__).parent.parent / "support" / "hub_stand_in.py"


@pytest.fixture(scope="module")
def endpoint():
    hub = subprocess.Popen([sys.executable, HUB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield f"http://127.0.0.1:{hub.stdout.readline().split()[0]}"
    hub.stdin.close()
    hub.wait(timeout=HANGS_AFTER_S)


@pytest.fixture
def pagoda(endpoint, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "PAGODA_MODEL_DIR": str(tmp_path)}

    def run(*arguments, **more):
        more = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True} | more
        return subprocess.run([PAGODA, *arguments], stdout=subprocess.PIPE, env=environment, timeout=HANGS_AFTER_S, **more)

    return run


def test_a_list_has_the_names_that_pull_takes_and_fetches_nothing(pagoda, tmp_path):
    listed = pagoda("pull", "--list", "hf:list/gguf")
    names = [line.split()[0] for line in listed.stdout.splitlines()]
    assert names == ["hf:list/gguf:Q8_0", "hf:list/gguf:Q4_K_M", "hf:list/gguf:Q2_K", "hf:list/gguf:BF16"]
    assert listed.returncode == 0 and not list(tmp_path.iterdir())
    assert "expected hf:ORG/NAME[@REVISION][:QUANTIZATION], got smollm2" in pagoda("pull", "--list", "smollm2").stderr
    assert [line.split()[0] for line in pagoda("pull", "--list", "hf:list/whole").stdout.splitlines()] == ["hf:list/whole"]


def test_what_is_chosen_is_told_before_it_is_fetched(pagoda):
    fetched = pagoda("pull", "hf:told/gguf")
    assert "hf:told/gguf: Q8_0, 6 files, 0.00 GB; " in fetched.stderr and "of the disk are free" in fetched.stderr
    assert fetched.returncode == 0 and pathlib.Path(fetched.stdout.strip()).is_dir()
    named = pagoda("pull", "hf:told/gguf:q4_k_m")
    assert "hf:told/gguf:q4_k_m: Q4_K_M, 7 files" in named.stderr
    assert [line.split()[0] for line in pagoda("list").stdout.splitlines()] == ["hf:told/gguf", "hf:told/gguf:Q4_K_M"]
    assert pagoda("rm", "hf:told/gguf").returncode == 0 and pagoda("rm", "hf:told/gguf:Q4_K_M").returncode == 0
    assert pagoda("list").stdout == ""


def test_a_quantisation_that_is_not_there_names_those_that_are(pagoda):
    refused = pagoda("pull", "hf:none/gguf:Q6_K")
    assert refused.returncode == 1 and "expected GGUF in Q6_K, got Q8_0 (0.0 GB), Q4_K_M" in refused.stderr


def test_yes_fetches_a_model_that_is_not_there(pagoda):
    without = pagoda("run", "hf:yes/whole", "hi")
    assert without.returncode == 1 and "`pagoda pull hf:yes/whole` fetches it" in without.stderr
    assert pagoda("list").stdout == ""
    pagoda("run", "hf:yes/whole", "--yes", "hi")  # its made weights are no model
    assert pagoda("list").stdout.startswith("hf:yes/whole ")


@pytest.mark.parametrize("answer, is_fetched", [("n\n", False), ("\x04", False), ("\n", True), ("yes\n", True)])
def test_a_terminal_is_asked(pagoda, answer, is_fetched):
    terminal, inner = pty.openpty()
    os.write(terminal, answer.encode())
    pagoda("run", "hf:ask/whole", "hi", stdin=inner, stderr=inner)
    os.close(inner)
    assert "hf:ask/whole is not on this machine. Fetch it? [Y/n] " in os.read(terminal, 4096).decode()
    os.close(terminal)
    assert pagoda("list").stdout.startswith("hf:ask/whole ") == is_fetched
