#!/usr/bin/env python3
"""Runs clang-tidy over the C++ sources of a build's compile_commands.json, as many at a time as there are CPUs.

  tools/tidy.py build/release            every source of ours
  tools/tidy.py build/release src/core   those whose path contains an argument

Prints what is found and exits 1 if anything is.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers  # noqa: E402


def sources_of(build, wanted):
    root = pathlib.Path(__file__).resolve().parent.parent
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    paths = {pathlib.Path(command["file"]).resolve() for command in commands}
    ours = [path for path in paths if path.is_relative_to(root) and not path.is_relative_to(root / "build")]
    relative = sorted(path.relative_to(root).as_posix() for path in ours)
    return [path for path in relative if not wanted or any(part in path for part in wanted)]


def tidy(program, build, path):
    start = time.monotonic()
    # GCC's own warnings are not clang's; ours are on in the build already.
    arguments = ["--quiet", "-p", str(build), "--extra-arg=-Wno-unknown-warning-option", path]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return path, done.returncode, done.stdout.strip(), time.monotonic() - start


def main():
    program = check_layers.clang_tool("clang-tidy")
    if program is None or len(sys.argv) < 2:
        print("tidy: expected clang-tidy in .venv (tools/setup.sh test installs it) and a build folder", file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1])
    sources = sources_of(build, sys.argv[2:])
    start = time.monotonic()
    num_bad = 0
    slowest = ("", 0.0)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for path, status, text, seconds in pool.map(lambda path: tidy(program, build, path), sources):
            slowest = max(slowest, (path, seconds), key=lambda pair: pair[1])
            if status != 0:
                num_bad += 1
                print(text or f"{path}: clang-tidy failed without a word", flush=True)
    print(f"{len(sources)} sources in {time.monotonic() - start:.0f} s, {num_bad} with findings; "
          f"the slowest: {slowest[0]}, {slowest[1]:.0f} s")
    return 1 if num_bad or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
