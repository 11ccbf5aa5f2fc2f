#!/usr/bin/env python3
"""Pagoda and llama.cpp on the same files, in turns: `bench/vs_llama_cpp.py build/release/pagoda`.

Fetches and builds llama.cpp (bench/llama_cpp.py says which and where), makes the checkpoints, and prints a table of medians:

  SmolLM2-135M  as `pagoda pull smollm2` has it (Q4_1), and llama-quantize's Q4_0, Q8_0 and BF16 of it
  0.6B shape    random weights of Qwen3-0.6B's shape (bench/random_checkpoint.py): BF16, and Q8_0, Q4_0, Q4_K_M of it
  Gemma 3 1B's shape    the same of Gemma 3 1B: Q4_0

Then what loading takes from a warm page cache, and the most memory that it needs, of Pagoda alone.

Each turn runs one engine and then the other on one workload, flash attention on in llama.cpp; every run stands beside the
machine's limits measured right before or after it, because a guest's limits move. Decode figures are of contexts from the
prompt's length to 64 (32 after a long prompt) tokens more. With --quick one turn of single short sequences.

Needs cmake, a C++ compiler, numpy, 6 GB in the cache folder, and a machine with nothing else to do. Where llama.cpp has been
built, `--only "0.6B shape"` needs no network.
"""

import os
import pathlib
import statistics
import subprocess
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llama_cpp  # noqa: E402
import random_checkpoint  # noqa: E402
from comparison import (  # noqa: E402
    KV_BYTES, Model, OtherWork, Pagoda, PeerError, Workload, flags_parser, markdown, parse_flags, print_comparisons,
    title)

NUM_LOADS = 3  # after a first one that warms the page cache
DEFAULT_MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

WORKLOADS = (
    Workload("prompt 512", 512, 0, 1, ("prefill",), True),
    Workload("prompt 512, int8 activations", 512, 0, 1, ("prefill",), False, ("--int8-activations",)),
    Workload("context 128", 128, 64, 1, ("decode",), True),
    Workload("32 sequences, contexts 128 to 192", 128, 64, 32, ("decode",), False),
    Workload("prompt 8,000", 8000, 32, 1, ("prefill", "decode"), False),
)


class RandomShape(NamedTuple):
    """A checkpoint with random weights, and what is asked of it."""

    name: str
    shape: str  # of random_checkpoint.SHAPES
    formats: tuple[str, ...]
    workloads: tuple[Workload, ...]


def best_lines(rows):
    """The best of llama.cpp's formats of a model, beside Pagoda's own file."""
    return "".join(best_line(rows, row) for row in rows if row.model.format == "Q4_1" and row.pagoda)


def best_line(rows, own):
    rivals = [row for row in rows
              if row.peer and (row.model.name, row.workload, row.phase) == (own.model.name, own.workload, own.phase)]
    if len(rivals) < 2:
        return ""
    best = max(rivals, key=lambda row: row.speed(row.peer))
    ratio = own.speed(own.pagoda) / best.speed(best.peer)
    return (f"\n{own.model.name} {own.model.format}, {own.phase}, {own.workload.name}: {ratio:.2f} x llama.cpp's best format, "
            f"{best.model.format}\n")


def load_table(pagoda, models):
    """Seconds and peak memory of loading, beside what may be: the file x 1.1, the KV pool and 100 MB."""
    lines = [["model", "format", "file, MB", "load, s", "peak, MB", "allowed, MB"]]
    lines.append(["---"] * len(lines[0]))
    for model in models:
        try:
            loads = [pagoda.load(model.path) for _ in range(1 + NUM_LOADS)][1:]
        except PeerError as error:
            print(error, file=sys.stderr, flush=True)
            continue
        size = model.path.stat().st_size
        lines.append([model.name, model.format, f"{size / 1e6:.0f}", f"{statistics.median(load[0] for load in loads):.2f}",
                      f"{max(load[1] for load in loads) / 1e6:.0f}", f"{(1.1 * size + KV_BYTES) / 1e6 + 100:.0f}"])
    return markdown(lines)


def default_model():
    """Where `pagoda pull smollm2` puts its file (src/hub/model_store.h)."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    folder = os.environ.get("PAGODA_MODEL_DIR") or pathlib.Path(cache) / "pagoda" / "models"
    return pathlib.Path(folder) / DEFAULT_MODEL_FILE


def make_models(pagoda, peer, folder, flags):
    """The checkpoints that the flags ask for, made where they are missing."""
    chosen = tuple(workload for workload in WORKLOADS if workload.is_quick or not flags.quick)
    # Batches are asked of SmolLM2, in other formats too for the comparison with llama.cpp's best; all else of one file.
    short = tuple(workload for workload in chosen if workload.is_quick)
    batches = tuple(workload for workload in chosen if workload.is_quick or workload.batch > 1)
    single = tuple(workload for workload in chosen if workload.batch == 1 and not workload.pagoda_flags)
    small = default_model()
    models = [Model("SmolLM2-135M", "Q4_1", small, chosen)]
    for name in ("Q4_0", "Q8_0", "BF16"):
        models.append(Model("SmolLM2-135M", name, folder / f"SmolLM2-135M.{name}.gguf", batches))
    shapes = {}
    for random in (RandomShape("0.6B shape", "qwen3-0.6b", ("BF16", "Q8_0", "Q4_0", "Q4_K_M"), short),
                   RandomShape("Gemma 3 1B's shape", "gemma3-1b", ("Q4_0",), single)):
        shapes[random.name] = random.shape
        for name in random.formats:
            models.append(Model(random.name, name, folder / f"{random.shape}-shape.{name}.gguf", random.workloads))
    asked = [model for model in models if any(flags.only in title(model, workload) for workload in model.workloads)]
    if any(model.name not in shapes for model in asked):
        pagoda.run("pull", "smollm2")
    for model in asked:
        shape = shapes.get(model.name)
        source = small if shape is None else folder / f"{shape}-shape.BF16.gguf"
        if not source.exists():
            print(f"writing {source.name}", file=sys.stderr, flush=True)
            random_checkpoint.write_checkpoint(source, random_checkpoint.SHAPES[shape])
        if model.path not in (small, source):
            peer.quantize(source, model.path, model.format)
    return asked


def main():
    parser = flags_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="one turn of single short sequences")
    flags = parse_flags(parser)
    if flags.quick:
        flags.turns = 1
    pagoda = Pagoda(flags.pagoda, flags.threads)
    try:
        peer = llama_cpp.LlamaCpp(flags.folder, flags.threads)
        models = make_models(pagoda, peer, flags.folder, flags)
        others = OtherWork()
        print(f"llama.cpp of {llama_cpp.PACKAGE} {llama_cpp.VERSION} (commit {peer.commit()}), {flags.threads} threads each\n")
        rows = print_comparisons(pagoda, peer, models, flags)
        print(best_lines(rows))
        print(others.line())
        print(load_table(pagoda, [model for model in models if any(row.model == model for row in rows)]))
    except (PeerError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"vs_llama_cpp: {error}")


if __name__ == "__main__":
    main()
