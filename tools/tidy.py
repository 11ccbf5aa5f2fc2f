#!/usr/bin/env python3
"""Runs clang-tidy over the C++ sources of a build's compile_commands.json, as many at a time as there are CPUs.

  tools/tidy.py build/release            every source of ours
  tools/tidy.py build/release src/core   those whose path contains an argument

Files that are compiled together (cmake/pagoda.cmake) are looked at together: what they include is read once.
Prints what is found and exits 1 if anything is.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_layers  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def units_of(build, wanted):
    """Returns what the compiler is called with, each with our sources that it reads: itself, or those it puts together."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    units = {}
    for path in sorted({pathlib.Path(command["file"]).resolve() for command in commands}):
        sources = [path]
        if path.parent.name == "Unity":
            sources = [pathlib.Path(name) for name in re.findall(r'^#include "(.*)"$', path.read_text(encoding="utf-8"), re.M)]
        ours = [source for source in sources if source.is_relative_to(ROOT) and not source.is_relative_to(ROOT / "build")]
        relative = [source.relative_to(ROOT).as_posix() for source in ours]
        if relative and (not wanted or any(part in source for source in relative for part in wanted)):
            units[path] = relative
    # The longest first, so that no core is left with one of them at the end.
    return dict(sorted(units.items(), key=lambda unit: -len(unit[1])))


def tidy(program, build, path):
    start = time.monotonic()
    # GCC's own warnings are not clang's; ours are on in the build already.
    configuration = f"--config-file={ROOT / '.clang-tidy'}"
    arguments = ["--quiet", "-p", str(build), configuration, "--extra-arg=-Wno-unknown-warning-option", str(path)]
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return path, done.returncode, done.stdout.strip(), time.monotonic() - start


def main():
    program = check_layers.clang_tool("clang-tidy")
    if program is None or len(sys.argv) < 2:
        print("tidy: expected clang-tidy in .venv (tools/setup.sh test installs it) and a build folder", file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1])
    units = units_of(build, sys.argv[2:])
    num_sources = sum(len(sources) for sources in units.values())
    start = time.monotonic()
    num_bad = 0
    slowest = ("", 0.0)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for path, status, text, seconds in pool.map(lambda path: tidy(program, build, path), units):
            slowest = max(slowest, (units[path][0], seconds), key=lambda pair: pair[1])
            if status != 0:
                num_bad += 1
                print(text or f"{', '.join(units[path])}: clang-tidy failed without a word", flush=True)
    print(f"{num_sources} sources in {len(units)} parts in {time.monotonic() - start:.0f} s, {num_bad} with findings; "
          f"the slowest: that of {slowest[0]}, {slowest[1]:.0f} s")
    return 1 if num_bad or not units else 0


if __name__ == "__main__":
    sys.exit(main())
