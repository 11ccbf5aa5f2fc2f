"""llama.cpp as PyPI's llama-cpp-python carries it: fetched by exact name, built outside the project, and timed.

Everything lies in one folder, by default the user's cache folder's pagoda/bench:

  llama_cpp_python-0.3.36.tar.gz     the source distribution
  llama_cpp_python-0.3.36/           of it, vendor/llama.cpp alone
  build/bin/                         what build() has made: llama-bench, llama-quantize, llama-server ...

Nothing of the package is installed. What is there already is not made twice.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from comparison import PeerError, checked_run  # noqa: E402

PACKAGE = "llama-cpp-python"
VERSION = "0.3.36"
SOURCE_NAME = f"llama_cpp_python-{VERSION}"
TOOLS = ("llama-bench", "llama-batched-bench", "llama-quantize")
CMAKE_OPTIONS = {
    "CMAKE_BUILD_TYPE": "Release",
    "GGML_NATIVE": "ON",
    "GGML_CUDA": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_BUILD_APP": "OFF",
}
BATCH_TOKENS, MICRO_BATCH_TOKENS = 2048, 512  # llama.cpp's own defaults


def say(text):
    print(f"llama.cpp: {text}", file=sys.stderr, flush=True)


def fetch_source(folder):
    source = folder / SOURCE_NAME / "vendor" / "llama.cpp"
    if (source / "CMakeLists.txt").exists():
        return source
    archive = folder / f"{SOURCE_NAME}.tar.gz"
    if not archive.exists():
        say(f"fetching {PACKAGE} {VERSION}")
        # Its own build tools may come as wheels: only this package has to be source.
        checked_run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", PACKAGE, "--dest", folder,
                     f"{PACKAGE}=={VERSION}"])
    unpacked = folder / "unpacking"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir()
    checked_run(["tar", "-xzf", archive, "-C", unpacked, f"{SOURCE_NAME}/vendor/llama.cpp"])
    shutil.rmtree(folder / SOURCE_NAME, ignore_errors=True)
    (unpacked / SOURCE_NAME).rename(folder / SOURCE_NAME)
    unpacked.rmdir()
    return source


def build(folder, targets):
    """The folder of the binaries. A build folder keeps the generator that it was made with."""
    binaries = folder / "build" / "bin"
    if all((binaries / target).exists() for target in targets):
        return binaries
    folder.mkdir(parents=True, exist_ok=True)
    source = fetch_source(folder)
    say(f"building {', '.join(targets)}, which takes minutes")
    options = [f"-D{name}={value}" for name, value in CMAKE_OPTIONS.items()]
    is_new = not (folder / "build" / "CMakeCache.txt").exists()
    generator = ["-G", "Ninja"] if is_new and shutil.which("ninja") else []
    checked_run(["cmake", "-S", source, "-B", folder / "build", *generator, *options], folder / "configure.log")
    checked_run(["nice", "-n", "10", "cmake", "--build", folder / "build", "--parallel", os.cpu_count(), "--target", *targets],
                folder / "build.log")
    return binaries


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, folder, threads):
        self.threads = threads
        self.tools = build(folder, TOOLS)

    def commit(self):
        """llama.cpp's own, which only stands in figures and on stderr: "0c1e570"."""
        done = subprocess.run([self.tools / "llama-bench", "--version"], capture_output=True, text=True, check=False)
        found = re.search(r"commit (\w+)", done.stdout + done.stderr)
        return found[1] if found else "unknown"

    def quantize(self, source, target, file_type):
        """Not twice; the file gets its name when it is whole."""
        if target.exists():
            return
        say(f"making {target.name}")
        partial = target.with_suffix(".partial")
        checked_run([self.tools / "llama-quantize", "--allow-requantize", source, partial, file_type, self.threads])
        partial.rename(target)

    def measure(self, model, workload):
        """Tokens a second: {"prefill": ..., "decode": ...}, whichever of them the workload wants."""
        if workload.batch > 1 or len(workload.phases) > 1:
            return self.measure_batch(model, workload)
        return {phase: self.measure_phase(model, workload, phase) for phase in workload.phases}

    def measure_phase(self, model, workload, phase):
        lengths = ["-p", workload.input_len, "-n", 0]
        if phase == "decode":
            lengths = ["-p", 0, "-n", workload.decode_steps, "-d", workload.input_len]
        out = checked_run([self.tools / "llama-bench", "-m", model, *lengths, "-t", self.threads, "-fa", "1", "-r", "1",
                           "-ngl", "0", "-b", BATCH_TOKENS, "-ub", MICRO_BATCH_TOKENS, "-o", "json"])
        return json.loads(out)[0]["avg_ts"]

    def measure_batch(self, model, workload):
        context = workload.batch * (workload.input_len + workload.decode_steps)
        out = checked_run([self.tools / "llama-batched-bench", "-m", model, "-c", context, "-npp", workload.input_len,
                           "-ntg", workload.decode_steps, "-npl", workload.batch, "-t", self.threads, "-fa", "on",
                           "-ngl", "0", "-b", BATCH_TOKENS, "-ub", MICRO_BATCH_TOKENS, "--output-format", "jsonl"])
        figures = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
        return {"prefill": figures["speed_pp"], "decode": figures["speed_tg"]}
