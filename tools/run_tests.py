"""Runs the tests of a preset by ctest, but not those that have passed before with the same binaries and files.

  tools/run_tests.py release --label-exclude 'emulated|sanitized'

Arguments behind the preset are ctest's. A test's fingerprint has its command, its environment, the contents of its binaries, and
the files that it may read: for a binary all files of the checkout that are no code, for a Python test all files. Tests with
another command, the house's rules for example, always run. What passed is in build/PRESET/passed.json; without that file every
test runs. Exits as ctest does.
"""

import argparse
import functools
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOT_OF_THE_CHECKOUT = {"build", ".git", ".venv", ".venv-clients", "node_modules", "target", "__pycache__", ".pytest_cache"}
CODE = {".cc", ".h", ".rs", ".js", ".md", ".cmake"}
# A folder that setup fills for tests: models, templates, headers.
FETCHED = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "pagoda"
# Variables that tests, the binary or the sanitizers read.
READ_VARIABLES = ("PAGODA_", "GTEST_", "ASAN_", "UBSAN_", "HF_")


@functools.cache
def digest_of_file(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_below(folder):
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - NOT_OF_THE_CHECKOUT)
        yield from (pathlib.Path(place) / name for name in sorted(names))


def machine():
    """What the system's part in a result depends on: the processor, the system's release and the packages of the set-up."""
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    flags = {line for line in cpuinfo.read_text().splitlines() if line.startswith(("flags", "model name"))} if cpuinfo.exists() else ()
    stamp = ROOT / "build/setup-test.stamp"
    variables = sorted(item for item in os.environ.items() if item[0].startswith(READ_VARIABLES))
    return [platform.platform(), os.cpu_count(), sorted(flags), stamp.read_text() if stamp.exists() else "", variables]


def data(root, fetched):
    """The contents of a checkout's files by name, and names, sizes and dates of fetched ones, which may be gigabytes."""
    files = {str(path.relative_to(root)): digest_of_file(path) for path in files_below(root) if path.is_file()}
    for path in files_below(fetched):
        if path.exists():
            files[str(path)] = [path.stat().st_size, path.stat().st_mtime_ns]
    return files


def is_code(name):
    """Whether no test binary reads a file: binaries run programs in Python of tests/support alone."""
    path = pathlib.Path(name)
    return path.suffix in CODE or (path.suffix == ".py" and not name.startswith("tests/support/"))


def libraries(build):
    return {str(path): digest_of_file(path) for path in sorted(build.rglob("*.so"))}


def fingerprint(test, build, shared, files):
    """A text for a test as ctest lists it; None: the test always runs. `shared`: what holds for all tests."""
    command = test.get("command", [])
    is_binary = bool(command) and pathlib.Path(command[0]).is_relative_to(build)
    if not is_binary and command[1:3] != ["-m", "pytest"]:
        return None
    environment = next((one["value"] for one in test["properties"] if one["name"] == "ENVIRONMENT"), [])
    words = command + [value for variable in environment for value in variable.split("=", 1)[1:]]
    binaries = {word: digest_of_file(word) for word in words if pathlib.Path(word).is_relative_to(build) and os.path.isfile(word)}
    read = {name: digest for name, digest in files.items() if not (is_binary and is_code(name))}
    return hashlib.sha256(json.dumps([command, environment, binaries, shared, read], sort_keys=True).encode()).hexdigest()


def passed_tests(report):
    """The names of those that ran and passed, by ctest's report in JUnit's form."""
    return {case.get("name") for case in ElementTree.parse(report).getroot().iter("testcase") if case.get("status") == "run"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    preset, arguments = parser.parse_known_args()
    build = ROOT / "build" / preset.preset
    ctest = ["ctest", "--preset", preset.preset, *arguments]
    listed = json.loads(subprocess.run([*ctest, "--show-only=json-v1"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    shared, files = [machine(), libraries(build)], data(ROOT, FETCHED)
    prints = {test["name"]: fingerprint(test, build, shared, files) for test in listed["tests"]}
    record, report = build / "passed.json", build / "ctest.xml"
    before = json.loads(record.read_text()) if record.exists() else {}
    unchanged = sorted(name for name, text in prints.items() if text and before.get(name) == text)
    if unchanged:
        print(f"{len(unchanged)} of {len(prints)} tests have passed with the same binaries and files, and are not run again "
              f"(without {record.relative_to(ROOT)} they are)", flush=True)
        if len(unchanged) == len(prints):
            return 0
        ctest += ["--exclude-regex", f"^({'|'.join(unchanged)})$"]
    report.unlink(missing_ok=True)
    ended = subprocess.run([*ctest, "--output-junit", str(report)], cwd=ROOT)
    if report.exists():
        passed = passed_tests(report)
        kept = {name: text for name, text in before.items() if prints.get(name, text) == text}
        record.write_text(json.dumps(kept | {name: prints[name] for name in passed if prints.get(name)}, indent=0, sort_keys=True))
    return ended.returncode


if __name__ == "__main__":
    sys.exit(main())
