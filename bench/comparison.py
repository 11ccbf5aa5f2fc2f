"""Pagoda and a peer on the same files, in turns: what bench/vs_llama_cpp.py and bench/vs_openvino.py share.

A peer has a `name`, and measure(model, workload), which gives tokens a second by phase or raises PeerError.
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

RUN_TIMEOUT_S = 3600
KV_BYTES = 64 << 20  # where memory is looked at
# A small process between: on Linux the peak of a process begins with what the one that starts it has resident.
RUN_AND_PRINT_PEAK = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


class PeerError(Exception):
    pass


def default_folder():
    """Where peers and checkpoints are kept: the user's cache folder's pagoda/bench."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "pagoda" / "bench"


def checked_run(command, log=None):
    """The command's stdout; its stderr goes to `log`, or into the error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if log:
        log.write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise PeerError(f"{pathlib.Path(str(command[0])).name}: exit {done.returncode}: {last}")
    return done.stdout


class Workload(NamedTuple):
    name: str
    input_len: int
    decode_steps: int  # tokens after a sequence's first
    batch: int
    phases: tuple[str, ...]  # that count
    is_quick: bool
    pagoda_flags: tuple[str, ...] = ()


class Model(NamedTuple):
    name: str
    format: str
    path: pathlib.Path
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

    def run(self, *words, **environment):
        done = subprocess.run([self.binary, *map(str, words)], env={**os.environ, **environment}, capture_output=True, text=True,
                              timeout=RUN_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise PeerError((done.stderr.strip() or f"pagoda: exit {done.returncode}").splitlines()[-1])
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
            raise PeerError(f"pagoda run {model}: exit {done.returncode}")
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
    pagoda: list[Turn]  # either is empty where it cannot run the file
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
        own = [f"{self.speed(self.pagoda):,.0f}", f"{100 * self.share():.0f} %", self.limit(self.pagoda)] if self.pagoda else ["-"] * 3
        peer = [f"{self.speed(self.peer):,.0f}", self.limit(self.peer)] if self.peer else ["-"] * 2
        ratio = f"{self.speed(self.pagoda) / self.speed(self.peer):.2f}" if self.pagoda and self.peer else "-"
        return [self.model.name, self.model.format, what, *own, *peer, ratio]


def head_of(peer):
    return ["model", "format", "what", "pagoda, tokens/s", "of the limit", "the limit", f"{peer.name}, tokens/s",
            "the limit then", "ratio"]


def markdown(lines):
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def title(model, workload):
    return f"{model.name} {model.format}, {workload.name}"


def compare(pagoda, peer, model, workload, turns):
    """The rows of one workload on one file; turns are left out where an engine refuses the file."""
    own, others = [], []
    for turn in range(turns):
        print(f"{title(model, workload)}: turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        for found, measure in ((own, pagoda.measure), (others, lambda *what: peer_turn(pagoda, peer, *what))):
            try:
                found.append(measure(model.path, workload))
            except PeerError as error:
                print(f"{model.path.name}: {error}", file=sys.stderr, flush=True)
    return [Row(model, workload, phase, own, others) for phase in workload.phases]


def print_comparisons(pagoda, peer, models, flags):
    """The table, a row as soon as it is measured."""
    head = head_of(peer)
    print(markdown([head, ["---"] * len(head)]), end="", flush=True)
    rows = []
    for model in models:
        for workload in model.workloads:
            if flags.only not in title(model, workload):
                continue
            new = compare(pagoda, peer, model, workload, flags.turns)
            print(markdown([row.cells() for row in new]), end="", flush=True)
            rows += new
    return rows


def flags_parser(doc):
    """A parser of the flags that comparisons of engines share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--turns", type=int, default=5, help="of each engine on each workload; medians count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="workloads whose 'MODEL FORMAT, WORKLOAD' contains this")
    parser.add_argument("--folder", type=pathlib.Path, default=default_folder(), help="of the peer and checkpoints")
    return parser


def parse_flags(parser):
    """The flags; ends the program where they are wrong."""
    flags = parser.parse_args()
    if flags.turns < 1 or flags.threads < 1:
        parser.error("--turns and --threads: expected 1 or more")
    return flags
