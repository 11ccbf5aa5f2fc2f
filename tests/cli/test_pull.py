"""`pagoda pull` from a stand-in of the hub: what a repository has, what is chosen, models that other commands fetch, and the store."""

import os
import pathlib
import pty
import shutil
import subprocess
import sys

import pytest
from pagoda_command import HANGS_AFTER_S, PAGODA, TINY

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
    assert pagoda("rm", "--yes", "hf:told/gguf").returncode == 0 and pagoda("rm", "hf:told/gguf:Q4_K_M", "--yes").returncode == 0
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


@pytest.fixture
def stored(tmp_path):
    """A store with one model that loads, and one of which only a part has come."""
    repository, commit = tmp_path / "hf/o/tiny", "a" * 40
    shutil.copytree(TINY, repository / commit)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text(commit)
    part = tmp_path / "hf/o/part" / ("b" * 40 + ".partial")
    part.mkdir(parents=True)
    (part / "model.safetensors").write_bytes(bytes(10**5))
    return tmp_path


def test_a_list_says_what_each_model_is(pagoda, stored):
    part, whole = (line.split() for line in pagoda("list").stdout.splitlines())
    assert part == ["hf:o/part@" + "b" * 40, "-", "-", "-", "0.1", "MB", "not", "whole;", "pull", "it", "again"]
    size = sum(file.stat().st_size for file in TINY.iterdir()) / 1e6
    assert whole == ["hf:o/tiny", "llama", "0.2M", "BF16", f"{size:.1f}", "MB"]


@pytest.mark.parametrize("answer, is_removed", [("n\n", False), ("\n", False), ("\x04", False), ("y\n", True)])
def test_a_removal_is_asked_about(pagoda, stored, answer, is_removed):
    terminal, inner = pty.openpty()
    os.write(terminal, answer.encode())
    done = pagoda("rm", "hf:o/tiny", stdin=inner, stderr=inner)
    os.close(inner)
    said = os.read(terminal, 4096).decode()
    os.close(terminal)
    assert "Remove hf:o/tiny, " in said and " MB? [y/N] " in said
    assert done.returncode == (0 if is_removed else 1) and ("not removed" in said) != is_removed
    assert (stored / "hf/o/tiny").exists() != is_removed


def test_where_nobody_can_be_asked_nothing_is_removed(pagoda, stored):
    refused = pagoda("rm", "hf:o/tiny")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1 and "expected --yes" in refused.stderr
    assert "no such model is here" in pagoda("rm", "hf:o/none").stderr
    assert (stored / "hf/o/tiny").exists()
    assert "MB given back" in pagoda("rm", "hf:o/tiny", "--yes").stdout
    assert not (stored / "hf/o/tiny").exists()
