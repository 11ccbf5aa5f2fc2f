#!/usr/bin/env python3
"""What each sampling feature costs: `bench/sampling_features.py build/release/pagoda`.

Starts a server and asks for the same completion with one feature on after the other, round by round, so that all of them meet the
same machine. Prints decoded tokens/s of each sample, medians of the rounds, and their share of those of greedy decoding. Times are
of whole answers without streaming, less that of an answer of one token, so that no client disturbs them.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from running_server import RunningServer, free_port  # noqa: E402

VOCAB_SIZE = 49152
TIMEOUT_S = 300
SCHEMA = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}, "minItems": 500}}, "required": ["names"]}
PENALTIES = {"repetition_penalty": 1.1, "presence_penalty": 0.5, "frequency_penalty": 0.5}

FEATURES = {
    "off, greedy": {},
    "temperature 1": {"temperature": 1},
    "top-k 50, top-p 0.9": {"temperature": 1, "top_k": 50, "top_p": 0.9},
    "top-p 0.9": {"temperature": 1, "top_p": 0.9},
    "min-p 0.05": {"temperature": 1, "min_p": 0.05},
    "typical-p 0.9": {"temperature": 1, "typical_p": 0.9},
    "XTC": {"temperature": 1, "xtc_probability": 0.5},
    "mirostat": {"temperature": 1, "mirostat": 2},
    "dynamic temperature": {"temperature": 1, "dynatemp_range": 0.5},
    "three penalties": PENALTIES,
    "DRY": {"dry_multiplier": 0.8},
    "penalties and DRY": {**PENALTIES, "dry_multiplier": 0.8},
    "log-probabilities": {"logprobs": 0},
    "5 log-probabilities": {"logprobs": 5},
    "100 biases": {"logit_bias": {str(i): -1 for i in range(100)}},
    "100 bad words": {"bad_words": [f"word{i}" for i in range(100)]},
    "7,000 allowed ids": {"allowed_token_ids": list(range(1000, 8000))},
    "a JSON schema": {"temperature": 1, "response_format": {"type": "json_schema", "json_schema": {"name": "names", "schema": SCHEMA}}},
}


def answer_s(port, prompt, num_tokens, samples, feature):
    body = {"prompt": prompt, "max_tokens": num_tokens, "n": samples, "temperature": 0, "seed": 1, "ignore_eos": True, **feature}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    begin = time.perf_counter()
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            usage = json.load(response)["usage"]
    except urllib.error.HTTPError as error:
        raise OSError(f"{feature}: {error.read().decode()[:300]}") from error
    if usage["completion_tokens"] != samples * num_tokens:
        raise OSError(f"{feature}: expected {samples} x {num_tokens} tokens, got {usage['completion_tokens']}")
    return time.perf_counter() - begin


def run_rounds(port, flags):
    """Tokens/s of each feature in each round."""
    draw = random.Random(20261121)
    prompt = [draw.randrange(100, flags.vocab_size) for _ in range(flags.input_len)]
    answer_s(port, prompt, 1, flags.samples, {})  # so that the prompt is in the prefix cache
    rates = {name: [] for name in FEATURES}
    for _ in range(flags.rounds):
        for name, feature in FEATURES.items():
            seconds = [answer_s(port, prompt, length, flags.samples, feature) for length in (flags.output_len, 1)]
            rates[name].append((flags.output_len - 1) / (seconds[0] - seconds[1]))
    return rates


def parse_flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pagoda", help="the binary")
    parser.add_argument("--model", default="smollm2")
    for name, value in (("threads", 2), ("rounds", 5), ("input-len", 400), ("output-len", 200), ("samples", 1),
                        ("vocab-size", VOCAB_SIZE)):
        parser.add_argument(f"--{name}", type=int, default=value)
    return parser.parse_args()


def main():
    flags = parse_flags()
    port = free_port()
    command = [flags.pagoda, "serve", flags.model, "--device", "cpu", "--threads", flags.threads, "--port", port]
    try:
        with RunningServer(command, port, "/dev/null"):
            rates = run_rounds(port, flags)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"sampling_features: {error}")
    off = statistics.median(next(iter(rates.values())))
    print("| feature | tokens/s | of greedy |\n|---|---|---|")
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"| {name} | {rate:.0f} | {100 * rate / off:.0f} % |")


if __name__ == "__main__":
    main()
