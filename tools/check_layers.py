#!/usr/bin/env python3
"""Holds the sources to the house's rules: who may include or use whom, how long files and functions may be, names, and format.

  tools/check_layers.py                  every rule but the format
  tools/check_layers.py --check-format   that clang-format has nothing to change
  tools/check_layers.py --format         let it change

Prints one line a finding and exits 1 if there is one. There is no list of exceptions: where a rule is wrong, change it.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import comment_rules  # noqa: E402
import function_lengths  # noqa: E402
import include_rules  # noqa: E402
import module_rules  # noqa: E402
from include_rules import MAY_INCLUDE, Finding, line_at  # noqa: E402

SOURCE_FOLDERS = ("src", "tests", "bench", "tools")
CPP = (".h", ".cc", ".cu", ".cuh", ".metal")
MEASURED = (*CPP, ".py", ".rs")

MAX_FOLDER_SOURCES = 60
MAX_FILE_LINES = 400
MAX_KERNEL_FILE_LINES = 600  # and tables
MAX_PRIVATE_METHODS = 20
MAX_FUNCTION_LINES = 60
MAX_KERNEL_LINES = 150

KERNELS = re.compile(
    r"^src/(?:ops/.*(?:_(?:reference|cpu|gpu|mlx|avx2|avx512|neon|portable)\w*|-inl)|backend/(?:cpu|gpu|mlx|cuda)/.*|(?:draw|quant)/.*)\.(?:cc|h|cu|cuh)$|^src/.*\.metal(?:\.h)?$"
)
VAGUE_NAMES = {"util", "utils", "common", "misc", "helper", "helpers"}
BACKEND_SWITCH = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*\bPAGODA_(?!\w*_H\b)\w*(?:MLX|CUDA|METAL|CPU|REFERENCE)", re.MULTILINE)
# Its objects compare each name that comes with all before it.
SLOW_OBJECTS = re.compile(r"^(?!\s*//).*\bnlohmann::ordered_(?:json|map)\b", re.MULTILINE)
THREAD_START = re.compile(r"\bstd::(?:thread|async)\(|\bthreads_?\.emplace_back\(")
UNFINISHED = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
SKIPPED = re.compile(r"GTEST_" r"SKIP|\bDISABLED_\w|pytest\.(?:mark\.)?" r"skip|unittest\." r"skip|#\[ig" r"nore")
CLASS = re.compile(r"^class (?:\[\[nodiscard\]\] )?(\w+)[^;{]*\{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
METHOD = re.compile(r"  (?!using |friend |struct |class |enum |//|static constexpr |template )[\w~][\w:<>,&*~\[\] ]*\([^=]*(?:[;,{}]|const)$")


def check_folder_sizes(paths):
    """A folder with more sources than one reads at once gets rooms."""
    sizes = collections.Counter(path.rsplit("/", 1)[0] for path in paths)
    for folder, size in sizes.items():
        if size > MAX_FOLDER_SOURCES:
            yield Finding(folder, 1, f"a folder has {MAX_FOLDER_SOURCES} sources at most, got {size}")


def check_file_length(path, source):
    limit = MAX_KERNEL_FILE_LINES if KERNELS.match(path) else MAX_FILE_LINES
    num_lines = len(source.splitlines())
    if num_lines > limit:
        yield Finding(path, 1, f"expected at most {limit} lines, got {num_lines}")


def check_function_lengths(path, source):
    limit = MAX_KERNEL_LINES if KERNELS.match(path) else MAX_FUNCTION_LINES
    for function in function_lengths.functions_of(path, source):
        if function.num_lines > limit:
            message = f"{function.name}: expected at most {limit} lines, got {function.num_lines}"
            yield Finding(path, function.line, message)


def check_private_methods(path, source):
    """Of headers' classes at the outer level: what is declared behind `private:`, two columns in."""
    if not path.endswith(".h") or path.endswith("-inl.h") or path.startswith("tests/"):
        return
    for match in CLASS.finditer(source):
        is_private = True
        count = 0
        for line in match[2].splitlines():
            if access := re.match(r" (public|protected|private):", line):
                is_private = access[1] == "private"
            elif is_private and METHOD.match(line):
                count += 1
        if count > MAX_PRIVATE_METHODS:
            message = f"{match[1]}: expected at most {MAX_PRIVATE_METHODS} private methods, got {count}"
            yield Finding(path, line_at(source, match.start()), message)


def check_name(path, source):
    for part in pathlib.PurePosixPath(path).with_suffix("").parts:
        if vague := VAGUE_NAMES & set(re.split(r"[_\-.]", part.lower())):
            yield Finding(path, 1, f"a name that says nothing: {vague.pop()}")


def check_patterns(path, source):
    for pattern, message in (
        (BACKEND_SWITCH, "a backend is chosen by the linker, never by the preprocessor"),
        (UNFINISHED, "unfinished"),
        (SKIPPED, "a test that is skipped"),
    ):
        for match in pattern.finditer(source):
            yield Finding(path, line_at(source, match.start()), message)


def check_replaced(path, source):
    """What the house has something better for: nlohmann's ordered objects and, outside tests, threads whose lack ends the process."""
    for match in SLOW_OBJECTS.finditer(source):
        message = "nlohmann's ordered objects take quadratic time: core/ordered_json.h has others"
        yield Finding(path, line_at(source, match.start()), message)
    if not path.startswith("src/") or path.endswith("_test.cc") or path == "src/core/start_thread.h":
        return
    for match in THREAD_START.finditer(source):
        yield Finding(path, line_at(source, match.start()), "a thread is started by core/start_thread.h")


CPP_RULES = (*include_rules.RULES, *comment_rules.CPP_RULES, check_private_methods, check_replaced)
RULES = (*comment_rules.RULES, check_file_length, check_function_lengths, check_name, check_patterns)


def findings_in(path, source):
    rules = (*CPP_RULES, *RULES) if path.endswith(CPP) else RULES
    return [finding for rule in rules for finding in rule(path, source)]


def source_files(root, suffixes):
    for folder in SOURCE_FOLDERS:
        for parent, folders, files in os.walk(root / folder):
            folders[:] = [name for name in folders if name not in ("target", "node_modules", "__pycache__") and not name.startswith(".")]
            yield from (pathlib.Path(parent) / name for name in sorted(files) if name.endswith(suffixes))


CODE_MAP = "docs/ARCHITECTURE.md"
CODE_MAP_ROW = re.compile(r"^\| `src/(\w+)` \|.*\| ([^|]+) \|$", re.MULTILINE)


def check_code_map(source):
    """The document's table of folders against MAY_INCLUDE."""
    stated = {}
    for match in CODE_MAP_ROW.finditer(source):
        folder, others = match.groups()
        stated[folder] = frozenset(others.split(", ")) if others != "nothing of ours" else frozenset()
        if stated[folder] != MAY_INCLUDE.get(folder):
            expected = ", ".join(sorted(MAY_INCLUDE[folder])) if folder in MAY_INCLUDE else "no such folder"
            yield Finding(CODE_MAP, line_at(source, match.start()), f"src/{folder} may include: expected {expected}, got {others}")
    for folder in MAY_INCLUDE.keys() - stated.keys():
        yield Finding(CODE_MAP, 1, f"src/{folder} is not in the code map")


TEST_FILE = re.compile(r"(?:^|/)(\w+_test\.cc|test_\w+\.py)$")


def check_tests_run(paths, builds):
    """Each file of tests is named in CMake's files: by its name or, where one call adds many, by what comes behind `test_`."""
    words = set(re.findall(r"[\w.]+", builds))
    for path in paths:
        match = TEST_FILE.search(path)
        if not match:
            continue
        name = match.group(1)
        if name not in words and name.removeprefix("test_").removesuffix(".py") not in words:
            yield Finding(path, 1, "no CMakeLists.txt names these tests, so that nothing runs them")


def check_all(root):
    files = list(source_files(root, MEASURED))
    builds = "\n".join(file.read_text(encoding="utf-8") for file in source_files(root, ("CMakeLists.txt", ".cmake")))
    findings = list(check_tests_run([file.relative_to(root).as_posix() for file in files], builds))
    findings += check_folder_sizes([file.relative_to(root).as_posix() for file in files])
    sources = {file.relative_to(root).as_posix(): file.read_text(encoding="utf-8") for file in files}
    findings += module_rules.check_circles(sources)
    for path, source in sources.items():
        findings += findings_in(path, source)
    return findings


def clang_tool(name):
    """The one from PyPI beside this interpreter; None where it has not been installed."""
    return shutil.which(name, path=os.path.dirname(sys.executable))


def format_all(root, only_check):
    """Lets clang-format change the C++ sources, or names those that it would change. True if all are as it wants them."""
    program = clang_tool("clang-format")
    if program is None:
        print("check_layers: expected clang-format in .venv (tools/setup.sh test installs it), found none", file=sys.stderr)
        return False

    def changes(files):
        arguments = ["--dry-run"] if only_check else ["-i"]
        done = subprocess.run([program, *arguments, *files], capture_output=True, text=True, check=True)
        return re.findall(r"^(.+?):\d+:\d+: warning: code should be clang-formatted", done.stderr, re.MULTILINE)

    files = list(source_files(root, CPP))
    num_shares = os.cpu_count() or 1
    with concurrent.futures.ThreadPoolExecutor(max_workers=num_shares) as pool:
        found = pool.map(changes, (files[share::num_shares] for share in range(num_shares)))
        unformatted = sorted({pathlib.Path(name) for names in found for name in names})
    for file in unformatted:
        print(f"{file.relative_to(root)}: clang-format would change it: `make format` does")
    return not unformatted


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check-format", action="store_true")
    parser.add_argument("--format", action="store_true")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    if options.format or options.check_format:
        return 0 if format_all(root, only_check=options.check_format) else 1
    findings = [*check_code_map((root / CODE_MAP).read_text(encoding="utf-8")), *check_all(root)]
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings" if findings else "the house is in order")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
