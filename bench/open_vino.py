#!/usr/bin/env python3
"""OpenVINO GenAI as PyPI has it: fetched by exact name into a folder outside the project, and timed.

  bench/open_vino.py MODEL.gguf --input-len N --decode-steps N --threads N

prints the figures of one sequence as JSON. It is run in a process of its own with the packages' folder in PYTHONPATH. Each run
has a prompt of new random tokens, because a cache of prefixes is on.
"""

import argparse
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from comparison import RUN_TIMEOUT_S, PeerError, checked_run  # noqa: E402

PACKAGES = ("openvino==2026.4.1", "openvino-genai==2026.4.1.0", "openvino-tokenizers==2026.4.1.0", "openvino-telemetry==2025.2.0")
FIRST_TOKEN, END_TOKEN = 300, 20000  # that prompts are drawn from
WARM_UP_TOKENS = 32


def fetch(folder, python_version=None):
    """The folder of the packages, which are fetched where they are missing. numpy, which they need, is the caller's own.

    `python_version`, "3.12", is that of whoever will import them, by default this one's.
    """
    packages = folder / "openvino"
    version = ["--python-version", python_version] if python_version else []
    if not packages.exists():
        print(f"OpenVINO: fetching {PACKAGES[1]}", file=sys.stderr, flush=True)
        partial = folder / "openvino.partial"
        shutil.rmtree(partial, ignore_errors=True)
        checked_run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", *version, "--target",
                     partial, *PACKAGES])
        partial.rename(packages)
    return packages


class OpenVino:
    name = "OpenVINO"

    def __init__(self, folder, threads):
        self.packages = fetch(folder)
        self.threads = threads

    def measure(self, model, workload):
        """Tokens a second of the workload's phases; of one sequence alone."""
        command = [sys.executable, __file__, model, "--input-len", workload.input_len, "--decode-steps",
                   max(workload.decode_steps, 1), "--threads", self.threads]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False,
                              env={**os.environ, "PYTHONPATH": str(self.packages)})
        if done.returncode != 0:
            raise PeerError(f"{model}: {(done.stderr.strip() or 'OpenVINO said nothing').splitlines()[-1]}")
        figures = json.loads(done.stdout.splitlines()[-1])
        return {phase: figures[phase] for phase in workload.phases}


def time_once(flags):
    # Not at the top: who only starts this process has not got them.
    numpy, openvino, genai = (importlib.import_module(name) for name in ("numpy", "openvino", "openvino_genai"))
    pipeline = genai.LLMPipeline(str(flags.model), "CPU", INFERENCE_NUM_THREADS=flags.threads)
    random = numpy.random.default_rng()

    def generate(input_len, output_len):
        tokens = random.integers(FIRST_TOKEN, END_TOKEN, (1, input_len), dtype=numpy.int64)
        inputs = genai.TokenizedInputs(openvino.Tensor(tokens), openvino.Tensor(numpy.ones_like(tokens)))
        config = genai.GenerationConfig(max_new_tokens=output_len, ignore_eos=True, do_sample=False)
        return pipeline.generate(inputs, config).perf_metrics

    generate(WARM_UP_TOKENS, 2)
    metrics = generate(flags.input_len, flags.decode_steps + 1)
    return {"prefill": 1000 * flags.input_len / metrics.get_ttft().mean, "decode": 1000 / metrics.get_tpot().mean}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--input-len", type=int, required=True)
    parser.add_argument("--decode-steps", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    print(json.dumps(time_once(parser.parse_args())))


if __name__ == "__main__":
    main()
