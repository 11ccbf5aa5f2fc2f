#!/usr/bin/env python3
"""Pagoda and OpenVINO GenAI on the same files, in turns: `bench/vs_openvino.py build/release/pagoda`.

Fetches OpenVINO's wheels (bench/open_vino.py says which) into the cache folder, writes random weights of Qwen3-0.6B's shape
(bench/random_checkpoint.py), and prints a table of medians of prompts of 512 and of decoding after 128. `pagoda quantize` makes
the formats. Every run stands beside the machine's limits measured right before or after it.

Needs numpy, 3 GB in the cache folder, and a machine with nothing else to do; no network where the wheels are there.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import open_vino  # noqa: E402
import random_checkpoint  # noqa: E402
from comparison import (  # noqa: E402
    Model, OtherWork, Pagoda, PeerError, Workload, flags_parser, parse_flags, print_comparisons, title)

NAME, SHAPE = "0.6B shape", "qwen3-0.6b"
FORMATS = ("Q8_0", "Q4_0", "Q4_K")  # beside BF16
WORKLOADS = (Workload("prompt 512", 512, 0, 1, ("prefill",), True), Workload("context 128", 128, 64, 1, ("decode",), True))


def make_models(pagoda, folder, flags):
    """The checkpoints that the flags ask for, made where they are missing."""
    source = folder / f"{SHAPE}-shape.BF16.gguf"
    models = [Model(NAME, "BF16", source, WORKLOADS)]
    models += [Model(NAME, name, folder / f"{SHAPE}-pure.{name}.gguf", WORKLOADS) for name in FORMATS]
    asked = [model for model in models if any(flags.only in title(model, workload) for workload in WORKLOADS)]
    if asked and not source.exists():
        random_checkpoint.write_checkpoint(source, random_checkpoint.SHAPES[SHAPE])
    for model in asked:
        if not model.path.exists():
            pagoda.run("quantize", source, model.path, "--format", model.format)
    return asked


def main():
    flags = parse_flags(flags_parser(__doc__))
    pagoda = Pagoda(flags.pagoda, flags.threads)
    try:
        flags.folder.mkdir(parents=True, exist_ok=True)
        peer = open_vino.OpenVino(flags.folder, flags.threads)
        models = make_models(pagoda, flags.folder, flags)
        others = OtherWork()
        print(f"{open_vino.PACKAGES[1]}, {flags.threads} threads each\n")
        print_comparisons(pagoda, peer, models, flags)
        print(others.line())
    except (PeerError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"vs_openvino: {error}")


if __name__ == "__main__":
    main()
