#!/usr/bin/env python3
"""What a Mac's GPU does, in one file to send us: `bench/on_a_mac.py build/release/pagoda`.

Runs Pagoda on the device mlx, and in turns with it mlx-lm and llama.cpp where they are installed, all on prompts of 512
tokens and answers of 128, alone and eight together; before and after that it measures the machine's limits. All that they
print goes to the terminal and into the file. A command that fails leaves its error there, and the rest goes on.

  llama-bench, llama-batched-bench   on PATH (brew install llama.cpp), on the GGUF file that Pagoda reads
  mlx_lm.benchmark                   on PATH (pip install mlx-lm), on the folder of --mlx-model, which Pagoda reads, too

Nothing is sent: the file has the machine's chip and system, no names, and of paths only what lies below the home folder.
"""

import argparse
import pathlib
import platform
import shutil
import subprocess
import sys
from typing import NamedTuple

RUN_TIMEOUT_S = 1800
INPUT_LEN, OUTPUT_LEN = 512, 128
BATCHES = (1, 8)


class Run(NamedTuple):
    command: list[str]
    absent: str = ""  # why it is not run


class Report:
    """A text that grows on the terminal and in a file at once."""

    def __init__(self, path):
        self.file = path.open("w", encoding="utf-8")
        self.num_failed = 0

    def add(self, text):
        text = text.replace(str(pathlib.Path.home()), "~")
        print(text, end="", flush=True)
        self.file.write(text)
        self.file.flush()

    def run(self, run):
        self.add(f"\n$ {' '.join(run.command)}\n")
        if run.absent:
            self.add(f"{run.absent}\n")
            return
        try:
            done = subprocess.run(run.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=RUN_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.num_failed += 1
            self.add(f"failed: {error}\n")
            return
        self.add(done.stdout if done.stdout.endswith("\n") or not done.stdout else done.stdout + "\n")
        if done.returncode != 0:
            self.num_failed += 1
            self.add(f"failed: exit {done.returncode}\n")


def words(*values):
    return [str(value) for value in values]


def peer(tool, *arguments):
    return Run(words(tool, *arguments), "" if shutil.which(tool) else "not installed")


def latency(pagoda, model, batch):
    return Run(words(pagoda, "bench", "latency", model, "--device", "mlx", "--input-len", INPUT_LEN, "--output-len", OUTPUT_LEN,
                     "--batch-size", batch))


def file_of(pagoda, model):
    """The path of a checkpoint that Pagoda knows by name, or what was asked for."""
    try:
        done = subprocess.run([pagoda, "info", model], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return model
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else model


def llama_runs(path, batch):
    """llama.cpp's decodes begin behind the prompt, as Pagoda's do."""
    if batch == 1:
        return [peer("llama-bench", "-m", path, "-p", INPUT_LEN, "-n", 0, "-fa", 1),
                peer("llama-bench", "-m", path, "-p", 0, "-n", OUTPUT_LEN, "-d", INPUT_LEN, "-fa", 1)]
    return [peer("llama-batched-bench", "-m", path, "-c", batch * (INPUT_LEN + OUTPUT_LEN), "-npp", INPUT_LEN, "-ntg", OUTPUT_LEN,
                 "-npl", batch, "-fa", "on")]


def mlx_lm_run(folder, batch):
    if not folder:
        return Run(["mlx_lm.benchmark"], "not run: --mlx-model names no folder")
    several = ["-b", batch] if batch > 1 else []
    return peer("mlx_lm.benchmark", "--model", folder, "-p", INPUT_LEN, "-g", OUTPUT_LEN, "-n", 3, *several)


def one_turn(pagoda, model, path, mlx_model):
    """Each engine after the other, a batch at a time."""
    for batch in BATCHES:
        yield latency(pagoda, model, batch)
        yield from llama_runs(path, batch)
        if mlx_model:
            yield latency(pagoda, mlx_model, batch)
        yield mlx_lm_run(mlx_model, batch)


def all_runs(pagoda, model, mlx_model, turns):
    limits = Run(words(pagoda, "bench", "machine", "--device", "mlx"))
    path = file_of(pagoda, model)
    yield Run(words(pagoda, "--version"))
    yield Run(words(pagoda, "info", "--device", "mlx"))
    yield Run(words(pagoda, "info", model))
    yield limits
    for _ in range(turns):
        yield from one_turn(pagoda, model, path, mlx_model)
    yield Run(words(pagoda, "bench", "throughput", model, "--device", "mlx", "--num-prompts", 32, "--input-len", 128,
                    "--output-len", 64))
    yield limits


def about_machine():
    chip = "unknown chip"
    if sys.platform == "darwin":
        done = subprocess.run(["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False)
        chip = done.stdout.strip() or chip
    return f"{chip}, {platform.platform()}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", default="smollm2", help="a name that `pagoda pull` knows, or a GGUF file")
    parser.add_argument("--mlx-model", default="", help="a folder that mlx-lm and Pagoda read")
    parser.add_argument("--turns", type=int, default=2, help="of each engine on each batch")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("pagoda-on-mac.txt"))
    flags = parser.parse_args()
    if flags.turns < 1:
        parser.error("--turns: expected 1 or more")
    report = Report(flags.out)
    report.add(about_machine())
    for run in all_runs(flags.pagoda, flags.model, flags.mlx_model, flags.turns):
        report.run(run)
    if report.num_failed:
        report.add(f"\nCommands that failed: {report.num_failed}\n")
    print(f"\nThank you. Please attach {flags.out} to an issue: such figures are the first.")


if __name__ == "__main__":
    main()
