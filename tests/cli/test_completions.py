"""Shells' completions as the shells read them, and the manual page as its formatter does."""

import re
import shutil
import subprocess

import pytest
from pagoda_command import PAGODA, pagoda


def completed(line, tmp_path):
    """What bash offers where `line` ends, a word or the beginning of one behind the last space."""
    script = tmp_path / "completions"
    script.write_text(pagoda("completions", "bash").stdout)
    words = re.findall(r"[=:]|[^ =:]+", line) + ([""] if line.endswith(" ") else [])
    asks = f"""source {script}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_pagoda
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-u", "-c", asks, "bash", *words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert not done.stderr
    return done.stdout.split("\n")[:-1] if done.stdout != "\n" else []


def test_bash_offers_commands_flags_values_and_files(tmp_path):
    (tmp_path / "a model.gguf").touch()
    (tmp_path / "keys.txt").touch()
    assert {"serve", "bench", "completions", "--version"} <= set(completed("pagoda ", tmp_path))
    assert "man" in completed("pagoda ", tmp_path) and "  man " in pagoda("--help").stdout
    assert set(completed("pagoda bench ", tmp_path)) >= {"machine", "latency", "throughput", "serve"}
    assert completed("pagoda serve --kv-ca", tmp_path) == [
        "--kv-cache-memory-bytes", "--kv-cache-layout", "--kv-cache-dtype", "--kv-cache-dtype-skip-layers"]
    assert completed("pagoda bench serve --base", tmp_path) == ["--base-url"]
    assert completed("pagoda serve --base", tmp_path) == []
    assert completed("pagoda serve --log-format ", tmp_path) == ["text", "json"]
    assert completed("pagoda serve --log-format=", tmp_path) == ["text", "json"]
    assert completed("pagoda serve --log-format=j", tmp_path) == ["json"]
    assert completed("pagoda serve --port ", tmp_path) == []
    assert completed("pagoda serve --api-key-file k", tmp_path) == ["keys.txt"]
    assert completed("pagoda serve a", tmp_path) == ["a model.gguf"]
    assert completed("pagoda serve m --log-", tmp_path) == ["--log-level", "--log-format"]
    assert completed("pagoda completions ", tmp_path) == ["-h", "--help", "bash", "zsh", "fish"]


def test_bash_offers_models_of_this_machine(tmp_path, monkeypatch):
    store = tmp_path / "store"
    for name in ("o/tiny", "o/tiny/gguf/Q4_0", "other/tiny"):
        (store / "hf" / name / ("a" * 40)).mkdir(parents=True)
        (store / "hf" / name / "refs").mkdir()
        (store / "hf" / name / "refs/main").write_text("a" * 40)
    monkeypatch.setenv("PAGODA_MODEL_DIR", str(store))
    (tmp_path / "hfile.gguf").touch()
    assert pagoda("list", "--names").stdout.split() == ["hf:o/tiny", "hf:o/tiny:Q4_0", "hf:other/tiny"]
    assert completed(f"{PAGODA} serve h", tmp_path) == ["hfile.gguf", "hf:o/tiny", "hf:o/tiny:Q4_0", "hf:other/tiny"]
    assert completed(f"{PAGODA} run hf:", tmp_path) == ["o/tiny", "o/tiny:Q4_0", "other/tiny"]
    assert completed(f"{PAGODA} run hf:o/", tmp_path) == ["o/tiny", "o/tiny:Q4_0"]
    assert completed(f"{PAGODA} rm hf:o/tiny:", tmp_path) == ["Q4_0"]
    assert "hfile.gguf" not in completed(f"{PAGODA} rm h", tmp_path)


def test_devices_that_are_not_here_are_not_offered(tmp_path):
    here = re.search(r"devices: (.*)", pagoda("info").stdout)[1].split()
    assert completed("pagoda serve --device ", tmp_path) == ["auto", *here]
    assert {"reference", "cpu"} <= set(here) <= {"reference", "cpu", "mlx", "cuda"}


FISH_OFFERS = (("serve --log-format=j", ["--log-format=json"]), ("bench serve --base", ["--base-url"]), ("serve --base", []),
               ("serve k", ["keys.txt"]), ("comp", ["completions"]), ("serve --port ", []))


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_theirs(shell, tmp_path):
    script = tmp_path / "completions"
    script.write_text(pagoda("completions", shell).stdout)
    (tmp_path / "keys.txt").touch()
    assert script.read_text().startswith({"zsh": "#compdef pagoda\n", "fish": "# fish"}[shell])
    if not shutil.which(shell):  # no machine needs either
        return
    subprocess.run([shell, "-n", script], check=True)
    for line, offers in FISH_OFFERS if shell == "fish" else ():
        done = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C 'pagoda {line}'"],
                              capture_output=True, text=True, check=True, cwd=tmp_path)
        assert [offer.split("\t")[0] for offer in done.stdout.splitlines()] == offers


def test_the_manual_page_is_one(tmp_path):
    page = tmp_path / "pagoda.1"
    page.write_text(pagoda("man").stdout)
    assert re.search(r"^\.SS .*bench serve", page.read_text(), re.MULTILINE)
    formatter = shutil.which("groff")
    if formatter:
        done = subprocess.run([formatter, "-man", "-Tascii", "-ww", page], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        shown = re.sub(r"\x1b\[[\d;]*m|.\x08", "", done.stdout)  # bold and underlined
        assert "--kv-cache-dtype-skip-layers" in shown and "One of text, json." in shown


def test_an_unknown_shell_is_refused():
    assert "expected bash, zsh or fish, got tcsh" in pagoda("completions", "tcsh", code=2).stderr
