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

Needs cmake, a C++ compiler, numpy, 6 GB in the cache folder, and a machine with nothing else to do.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import llama_cpp  # noqa: E402
import random_checkpoint  # noqa: E402

RUN_TIMEOUT_S = 3600
KV_BYTES = 64 << 20  # where memory is looked at
# A small process between: on Linux the peak of a process begins with what the one that starts it has resident.
RUN_AND_PRINT_PEAK = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""
NUM_LOADS = 3  # after a first one that warms the page cache
DEFAULT_MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Workload(NamedTuple):
    name: str
    input_len: int
    decode_steps: int  # tokens after a sequence's first
    batch: int
    phases: tuple[str, ...]  # that count
    is_quick: bool
    pagoda_flags: tuple[str, ...] = ()


WORKLOADS = (
    Workload("prompt 512", 512, 0, 1, ("prefill",), True),
    Workload("prompt 512, int8 activations", 512, 0, 1, ("prefill",), False, ("--int8-activations",)),
    Workload("context 128", 128, 64, 1, ("decode",), True),
    Workload("32 sequences, contexts 128 to 192", 128, 64, 32, ("decode",), False),
    Workload("prompt 8,000", 8000, 32, 1, ("prefill", "decode"), False),
)


class Model(NamedTuple):
    name: str
    format: str
    path: pathlib.Path
    workloads: tuple[Workload, ...]


class RandomShape(NamedTuple):
    """A checkpoint with random weights, and what is asked of it."""

    name: str
    shape: str  # of random_checkpoint.SHAPES
    formats: tuple[str, ...]
    workloads: tuple[Workload, ...]


class Turn(NamedTuple):
    """One engine's run: tokens a second by phase, and the limits beside it."""

    tokens_per_s: dict[str, float]
    shares: dict[str, float]  # of the read limit in decode, of the dot-product limit in prefill; Pagoda's own only
    read_gb_per_s: float
    product_gmac_per_s: float


class Pagoda:
    def __init__(self, binary, threads):
        self.binary = binary
        self.threads = threads

    def run(self, *words):
        done = subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True, timeout=RUN_TIMEOUT_S,
                              check=False)
        if done.returncode != 0:
            raise llama_cpp.PeerError((done.stderr.strip() or f"pagoda: exit {done.returncode}").splitlines()[-1])
        return done.stdout

    def limits(self):
        """(GB/s, GMAC/s) of all threads."""
        limits = json.loads(self.run("bench", "machine", "--threads", self.threads, "--json"))["by_threads"][-1]
        return limits["read_gb_per_s"], limits.get("bf16_gmac_per_s", limits["float32_gmac_per_s"])

    def measure(self, model, workload):
        figures = json.loads(
            self.run("bench", "latency", model, "--device", "cpu", "--threads", self.threads, "--rounds", 1, "--input-len",
                     workload.input_len, "--output-len", workload.decode_steps + 1, "--batch-size", workload.batch, "--json",
                     *workload.pagoda_flags))
        gmac = figures.get("machine_bf16_gmac_per_s", figures["machine_float32_gmac_per_s"])
        return Turn({phase: figures[f"{phase}_tokens_per_s"] for phase in workload.phases},
                    {"prefill": figures["prefill_share"], "decode": figures["read_share"]},
                    figures["machine_read_gb_per_s"], gmac)

    def load(self, model):
        """(seconds to load, bytes resident at most) of a run of one token."""
        words = ["run", model, "--device", "cpu", "--threads", self.threads, "--prompt-ids", 5, "--max-tokens", 1, "--json",
                 "--kv-cache-memory-bytes", KV_BYTES]
        done = subprocess.run([sys.executable, "-c", RUN_AND_PRINT_PEAK, self.binary, *map(str, words)], capture_output=True,
                              text=True, timeout=RUN_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise llama_cpp.PeerError(f"pagoda run {model}: exit {done.returncode}")
        *answer, peak = done.stdout.splitlines()
        return json.loads("".join(answer))["timing"]["load_s"], int(peak) * (1 if sys.platform == "darwin" else 1024)


class OtherWork:
    """What share of the machine's cores other processes take, from its making on; on Linux."""

    def __init__(self):
        self.start = self.busy_and_own_s()

    @staticmethod
    def busy_and_own_s():
        try:
            ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
        except OSError:
            return None
        user, nice, system, _, _, irq, softirq, steal = ticks[:8]
        own = os.times()
        return (time.monotonic(), (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK"),
                own.user + own.system + own.children_user + own.children_system)

    def line(self):
        if self.start is None:
            return ""
        wall, busy, own = (end - start for end, start in zip(self.busy_and_own_s(), self.start))
        return f"Other processes took {100 * max(0.0, busy - own) / wall / os.cpu_count():.0f} % of the cores meanwhile.\n"


def peer_turn(pagoda, peer, model, workload):
    before = pagoda.limits()
    tokens_per_s = peer.measure(model, workload)
    after = pagoda.limits()
    return Turn(tokens_per_s, {}, max(before[0], after[0]), max(before[1], after[1]))


class Row(NamedTuple):
    model: Model
    workload: Workload
    phase: str
    pagoda: list[Turn]  # empty: it cannot run the file
    peer: list[Turn]

    def speed(self, turns):
        return statistics.median(turn.tokens_per_s[self.phase] for turn in turns)

    def limit(self, turns):
        if self.phase == "decode":
            return f"{statistics.median(turn.read_gb_per_s for turn in turns):.0f} GB/s"
        return f"{statistics.median(turn.product_gmac_per_s for turn in turns):.0f} GMAC/s"

    def share(self):
        return statistics.median(turn.shares[self.phase] for turn in self.pagoda)

    def cells(self):
        what = f"{self.phase}, {self.workload.name}"
        peer = [f"{self.speed(self.peer):,.0f}", self.limit(self.peer)]
        if not self.pagoda:
            return [self.model.name, self.model.format, what, "-", "-", "-", *peer, "-"]
        speed = self.speed(self.pagoda)
        return [self.model.name, self.model.format, what, f"{speed:,.0f}", f"{100 * self.share():.0f} %",
                self.limit(self.pagoda), *peer, f"{speed / self.speed(self.peer):.2f}"]


HEAD = ["model", "format", "what", "pagoda, tokens/s", "of the limit", "the limit", "llama.cpp, tokens/s", "the limit then",
        "ratio"]


def markdown(lines):
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def best_lines(rows):
    """The best of llama.cpp's formats of a model, beside Pagoda's own file."""
    return "".join(best_line(rows, row) for row in rows if row.model.format == "Q4_1" and row.pagoda)


def best_line(rows, own):
    rivals = [row for row in rows if (row.model.name, row.workload, row.phase) == (own.model.name, own.workload, own.phase)]
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
        except llama_cpp.PeerError as error:
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
    pagoda.run("pull", "smollm2")
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
    for model in asked:
        shape = shapes.get(model.name)
        source = small if shape is None else folder / f"{shape}-shape.BF16.gguf"
        if not source.exists():
            print(f"writing {source.name}", file=sys.stderr, flush=True)
            random_checkpoint.write_checkpoint(source, random_checkpoint.SHAPES[shape])
        if model.path not in (small, source):
            peer.quantize(source, model.path, model.format)
    return asked


def title(model, workload):
    return f"{model.name} {model.format}, {workload.name}"


def compare(pagoda, peer, model, workload, turns):
    """The rows of one workload on one file; Pagoda's turns are left out where it refuses the file."""
    own, others = [], []
    for turn in range(turns):
        print(f"{title(model, workload)}: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        try:
            own.append(pagoda.measure(model.path, workload))
        except llama_cpp.PeerError as error:
            print(f"{model.path.name}: {error}", file=sys.stderr, flush=True)
        others.append(peer_turn(pagoda, peer, model.path, workload))
    return [Row(model, workload, phase, own, others) for phase in workload.phases]


def print_comparisons(pagoda, peer, models, flags):
    """The table, a row as soon as it is measured."""
    print(markdown([HEAD, ["---"] * len(HEAD)]), end="", flush=True)
    rows = []
    for model in models:
        for workload in model.workloads:
            if flags.only not in title(model, workload):
                continue
            new = compare(pagoda, peer, model, workload, 1 if flags.quick else flags.turns)
            print(markdown([row.cells() for row in new]), end="", flush=True)
            rows += new
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--turns", type=int, default=5, help="of each engine on each workload; medians count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="workloads whose 'MODEL FORMAT, WORKLOAD' contains this")
    parser.add_argument("--folder", type=pathlib.Path, default=llama_cpp.default_folder(), help="of llama.cpp and checkpoints")
    parser.add_argument("--quick", action="store_true", help="one turn of single short sequences")
    flags = parser.parse_args()
    if flags.turns < 1 or flags.threads < 1:
        parser.error("--turns and --threads: expected 1 or more")
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
    except (llama_cpp.PeerError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"vs_llama_cpp: {error}")


if __name__ == "__main__":
    main()
