#!/usr/bin/env python3
"""Two builds of Pagoda: `bench/two_builds.py BEFORE AFTER` says whether they answer with the same bits, at the same speed.

Bits: twenty prompts in one batch, ten greedy and ten sampled, and all that `run --json` says of them but times:

  five tiny models of tests/golden/data   on reference, cpu and mlx
  SmolLM2-135M in Q4_1, Q8_0, Q4_0, Q4_K  by each instruction set of this processor, in 60 blocks of 8 (which preempts),
                                          with int8 activations, and on mlx; BEFORE writes what `pagoda pull smollm2` lacks

Figures: the workloads of vs_llama_cpp.py on SmolLM2's Q4_1. The builds take turns; a row holds where AFTER's median is no
further from BEFORE's than BEFORE's own turns are from one another. Timing needs a machine with nothing else to do.

Exits with 1 where bits differ. A change that means to change bits says which rows it changes.
"""

import argparse
import contextlib
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from comparison import OtherWork, Pagoda, PeerError, default_folder, markdown  # noqa: E402
from vs_llama_cpp import WORKLOADS, default_model  # noqa: E402

TINY_MODELS = pathlib.Path(__file__).parents[1] / "tests/golden/data"
TINY_NAMES = ("tiny-llama31", "tiny-gemma3", "tiny-qwen2", "tiny-phi3", "tiny-olmo2")
TINY_DEVICES = ("reference", "cpu", "mlx")
WRITTEN_FORMATS = ("Q8_0", "Q4_0", "Q4_K")
INSTRUCTION_SETS = ("amx", "avx512", "avx2", "neon", "portable")
SMALL_POOL = ("--block-size", "8", "--num-kv-blocks", "60")
SMALLEST_VOCABULARY = 256
# One of each kind: what the host draws, what the device draws, what looks at the past, and what is told beside the tokens.
SAMPLED = (
    {"temperature": 1.0},
    {"temperature": 0.8, "top_p": 0.9, "top_k": 40},
    {"temperature": 1.2, "min_p": 0.05, "repetition_penalty": 1.2},
    {"temperature": 0.9, "presence_penalty": 0.5, "frequency_penalty": 0.3},
    {"temperature": 1.0, "dry_multiplier": 0.8, "dry_allowed_length": 2},
    {"temperature": 1.0, "mirostat": 2},
    {"temperature": 1.0, "typical_p": 0.8},
    {"temperature": 1.0, "xtc_probability": 0.5, "xtc_threshold": 0.05},
    {"temperature": 1.0, "dynatemp_range": 0.5},
    {"temperature": 1.0, "top_k": 20, "logprobs": 3},
)


class Case(NamedTuple):
    name: str
    model: pathlib.Path
    flags: tuple[str, ...]
    instruction_set: str = ""


def prompt_lines(seed):
    """Twenty lines of a prompts file."""
    draw = random.Random(seed)
    chosen = [{"temperature": 0}] * len(SAMPLED) + list(SAMPLED)
    lines = []
    for index, parameters in enumerate(chosen):
        ids = [draw.randrange(3, SMALLEST_VOCABULARY) for _ in range(draw.randrange(1, 70))]
        lines.append({"prompt_ids": ids, "max_tokens": draw.randrange(8, 40), "ignore_eos": True, "seed": index, **parameters})
    return "".join(json.dumps(line) + "\n" for line in lines)


def instruction_sets(build, model):
    """Those that this processor has and the build was compiled for."""
    found = []
    for name in INSTRUCTION_SETS:
        with contextlib.suppress(PeerError):
            build.run("run", model, "--device", "cpu", "--prompt-ids", 5, "--max-tokens", 1, PAGODA_CPU_ISA=name)
            found.append(name)
    return found


def written_models(before, folder):
    """SmolLM2 by format."""
    before.run("pull", "smollm2")
    models = {"Q4_1": default_model()}
    for name in WRITTEN_FORMATS:
        models[name] = folder / f"SmolLM2-135M.by-pagoda.{name}.gguf"
        if not models[name].exists():
            print(f"writing {models[name].name}", file=sys.stderr, flush=True)
            before.run("quantize", default_model(), models[name], "--format", name)
    return models


def bit_cases(before, folder):
    for name in TINY_NAMES:
        for device in TINY_DEVICES:
            yield Case(f"{name}, {device}", TINY_MODELS / name, ("--device", device))
    for name, path in written_models(before, folder).items():
        for instruction_set in instruction_sets(before, path):
            yield Case(f"SmolLM2 {name}, {instruction_set}", path, ("--device", "cpu"), instruction_set)
        for what, flags in (("60 blocks of 8", ("--device", "cpu", *SMALL_POOL)),
                            ("int8 activations", ("--device", "cpu", "--int8-activations")), ("mlx", ("--device", "mlx"))):
            yield Case(f"SmolLM2 {name}, {what}", path, flags)


def answers(build, case, prompts):
    """What `run --json` says of each prompt but times."""
    environment = {"PAGODA_CPU_ISA": case.instruction_set} if case.instruction_set else {}
    told = build.run("run", case.model, *case.flags, "--prompts-file", prompts, "--json", **environment)
    lines = [json.loads(line) for line in told.split("\n") if line]  # splitlines() ends lines within texts too
    for line in lines:
        del line["timing"]
    return lines


def difference(before, after):
    """Of two lists of answers, as a cell."""
    if len(before) != len(after):
        return f"{len(before)} and {len(after)} answers"
    different = [index for index, pair in enumerate(zip(before, after)) if pair[0] != pair[1]]
    if not different:
        return "the same"
    first = different[0]
    keys = [key for key in {**before[first], **after[first]} if before[first].get(key) != after[first].get(key)]
    return f"{len(different)} of {len(before)} differ, prompt {first} first: {', '.join(keys)}"


def compare_bits(before, after, flags):
    """Prints the table; whether all is the same."""
    is_same = True
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        prompts.write(prompt_lines(flags.seed))
        prompts.flush()
        print(f"twenty prompts, seed {flags.seed}\n\n" + markdown([["model", "bits"], ["---"] * 2]), end="", flush=True)
        for case in bit_cases(before, flags.folder):
            if flags.only in case.name:
                cell = difference(*(answers(build, case, prompts.name) for build in (before, after)))
                is_same = is_same and cell == "the same"
                print(markdown([[case.name, cell]]), end="", flush=True)
    return is_same


def figure_row(name, before, after):
    """Of the turns' tokens a second."""
    middle, ratio = statistics.median(before), statistics.median(after) / statistics.median(before)
    least, most = min(before) / middle, max(before) / middle
    verdict = "yes" if least <= ratio <= most else "faster" if ratio > most else "no"
    return [name, f"{middle:,.0f}", f"{statistics.median(after):,.0f}", f"{ratio:.3f}", f"{least:.3f} to {most:.3f}", verdict]


def in_turn(before, after, workload, turn):
    """What both builds measure. Each is the first in every second turn: the second one finds a warmer machine."""
    if turn % 2 == 0:
        return tuple(build.measure(default_model(), workload) for build in (before, after))
    return tuple(build.measure(default_model(), workload) for build in (after, before))[::-1]


def compare_figures(before, after, flags):
    head = ["SmolLM2 Q4_1", "before, tokens/s", "after", "ratio", "before's own turns", "holds"]
    print("\n" + markdown([head, ["---"] * len(head)]), end="", flush=True)
    for workload in WORKLOADS:
        if flags.only not in workload.name:
            continue
        turns = [in_turn(before, after, workload, turn) for turn in range(flags.turns)]
        for phase in workload.phases:
            speeds = [[turn.tokens_per_s[phase] for turn in side] for side in zip(*turns)]
            print(markdown([figure_row(f"{phase}, {workload.name}", *speeds)]), end="", flush=True)


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a binary")
    parser.add_argument("after", help="another")
    parser.add_argument("--bits", action="store_true", help="bits alone: nothing is timed")
    parser.add_argument("--figures", action="store_true", help="figures alone")
    parser.add_argument("--turns", type=int, default=5, help="of each build on each workload; medians count")
    parser.add_argument("--threads", type=int, default=2, help="of figures")
    parser.add_argument("--only", default="", help="rows that contain this")
    parser.add_argument("--seed", type=int, default=1, help="of the prompts")
    parser.add_argument("--folder", type=pathlib.Path, default=default_folder(), help="of checkpoints that are written")
    flags = parser.parse_args()
    if flags.turns < 1 or flags.threads < 1:
        parser.error("--turns and --threads: expected 1 or more")
    return flags


def main():
    flags = parse_flags()
    before, after = (Pagoda(binary, flags.threads) for binary in (flags.before, flags.after))
    is_same = True
    try:
        flags.folder.mkdir(parents=True, exist_ok=True)
        if not flags.figures:
            is_same = compare_bits(before, after, flags)
        if not flags.bits:
            others = OtherWork()
            compare_figures(before, after, flags)
            print(f"\n{others.line()}", end="")
    except (PeerError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"two_builds: {error}")
    sys.exit(0 if is_same else 1)


if __name__ == "__main__":
    main()
