#!/usr/bin/env python3
"""Pagoda's server and llama-server on one file, in turns: `bench/serve_vs_llama.py build/release/pagoda`.

Builds llama-server from the same source as bench/vs_llama_cpp.py's tools. Each turn starts one server, sends it the load with
`pagoda bench serve` (100 prompts of 1,024 random tokens, 128 tokens out, 10 requests a second, at most 8 at a time, 5 warm-ups),
stops it, and does the same with the other. Prints a table of medians and the ratios.

llama-server gets as many slots as there are requests at a time, each with room for a request, flash attention on, and no cache
of idle prompts, which would only cost it time here; all else is its default.

Needs cmake, a C++ compiler, 2 GB in the cache folder, and a machine with nothing else to do.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import comparison  # noqa: E402
import llama_cpp  # noqa: E402
import vs_llama_cpp  # noqa: E402
from running_server import RunningServer, free_port  # noqa: E402

FIGURES = (("output_throughput", "output, tokens/s", False), ("total_token_throughput", "in and out, tokens/s", False),
           ("mean_ttft_ms", "mean time to first token, ms", True), ("p99_ttft_ms", "p99 of it, ms", True),
           ("mean_tpot_ms", "mean time per output token, ms", True), ("p99_itl_ms", "p99 between tokens, ms", True),
           ("mean_e2el_ms", "mean end-to-end latency, ms", True))


def pagoda_command(binary, flags, port):
    return [binary, "serve", flags.model, "--device", "cpu", "--threads", flags.threads, "--port", port]


def llama_command(binary, flags, port):
    slots = flags.max_concurrency
    context = slots * (flags.input_len + flags.output_len + 64)
    return [binary, "-m", flags.model, "-t", flags.threads, "-tb", flags.threads, "-np", slots, "-c", context, "-fa", "on",
            "-ngl", 0, "--cache-ram", 0, "--host", "127.0.0.1", "--port", port]


def bench_command(flags, url):
    return [flags.pagoda, "bench", "serve", "--base-url", url, "--num-prompts", flags.num_prompts, "--request-rate",
            flags.request_rate, "--max-concurrency", flags.max_concurrency, "--num-warmups", flags.num_warmups, "--input-len",
            flags.input_len, "--output-len", flags.output_len, "--json"]


def turn(flags, make_command, binary, log):
    port = free_port()
    with RunningServer(make_command(binary, flags, port), port, log) as server:
        figures = json.loads(comparison.checked_run(bench_command(flags, server.url)))
    if figures["failed"]:
        raise comparison.PeerError(f"{binary}: {figures['failed']} requests failed: see {log}")
    return figures


def table(own, peer):
    """Medians over turns; a ratio above 1 is in Pagoda's favour."""
    lines = [["what", "pagoda", "llama-server", "ratio"], ["---"] * 4]
    for name, label, less_is_better in FIGURES:
        mine, theirs = (statistics.median(figures[name] for figures in turns) for turns in (own, peer))
        ratio = theirs / mine if less_is_better else mine / theirs
        lines.append([label, f"{mine:,.1f}", f"{theirs:,.1f}", f"{ratio:.2f}"])
    return comparison.markdown(lines)


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", type=pathlib.Path, default=None, help="a GGUF file; SmolLM2's unless given")
    parser.add_argument("--turns", type=int, default=3, help="of each server; medians count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, default=comparison.default_folder(), help="of llama.cpp")
    for name, value in (("num-prompts", 100), ("max-concurrency", 8), ("num-warmups", 5), ("input-len", 1024),
                        ("output-len", 128)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--request-rate", type=float, default=10)
    flags = parser.parse_args()
    flags.model = flags.model or vs_llama_cpp.default_model()
    return flags


def main():
    flags = parse_flags()
    try:
        llama_server = llama_cpp.build(flags.folder, ["llama-server"]) / "llama-server"
        others = comparison.OtherWork()
        own, peer = [], []
        for number in range(flags.turns):
            print(f"turn {number + 1} of {flags.turns}", file=sys.stderr, flush=True)
            own.append(turn(flags, pagoda_command, flags.pagoda, flags.folder / "pagoda_serve.log"))
            peer.append(turn(flags, llama_command, llama_server, flags.folder / "llama_server.log"))
        print(f"{flags.model.name}: {flags.num_prompts} requests of {flags.input_len} tokens in and {flags.output_len} out, "
              f"{flags.request_rate:g} a second, {flags.max_concurrency} at a time; {flags.threads} threads each\n")
        print(table(own, peer))
        print(others.line())
    except (comparison.PeerError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"serve_vs_llama: {error}")


if __name__ == "__main__":
    main()
