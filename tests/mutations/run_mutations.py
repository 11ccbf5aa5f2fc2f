#!/usr/bin/env python3
"""Makes the mistakes of mutations.py, one at a time, and says of each whether its unit test sees it.

  tests/mutations/run_mutations.py BUILD           five of them, by the date: eight days have all
  tests/mutations/run_mutations.py BUILD --all
  tests/mutations/run_mutations.py BUILD NAME...

BUILD is a build folder with the tests' binaries. A mistake is made in a copy of its file. The copy alone is compiled,
without optimisation, and linked ahead of the library that has the right file: of two definitions the first one counts.
Prints a line a mistake. Exits 1 where one is missed, 2 where the table or the build is wrong.
"""

import argparse
import concurrent.futures
import datetime
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/mutations"), str(ROOT / "tests/support")]
from mutated_text import mutated_text, places_of  # noqa: E402
from mutations import MUTATIONS  # noqa: E402

NUM_DAYS = 8  # that have all mistakes
NUM_WORKERS = 2
HANGS_AFTER_S = 120


class Unusable(Exception):
    """What keeps a mistake from saying anything about its test."""


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        self.commands = {}  # by target

    def commands_of(self, target):
        """The commands that make a target, as lists of words; the last one links it."""
        if target not in self.commands:
            ninja = subprocess.run(["ninja", "-t", "commands", target], cwd=self.folder, capture_output=True, text=True)
            if ninja.returncode != 0:
                raise Unusable(f"{self.folder} has no target {target}: {ninja.stdout}{ninja.stderr}".strip())
            self.commands[target] = [shlex.split(line) for line in ninja.stdout.splitlines()]
        return self.commands[target]

    def compile_command(self, target, source):
        """The command that compiles a source for a target: alone, or among those of one unit."""
        for words in self.commands_of(target):
            file = behind(words, "-c")
            if file == str(source) or (file and "/Unity/" in file and f'"{source}"' in pathlib.Path(file).read_text()):
                return words
        raise Unusable(f"{target} does not compile {source}")

    def link_command(self, target):
        words = self.commands_of(target)[-1]  # ": && c++ ... && :"
        begin = words.index("&&") + 1
        return words[begin : words.index("&&", begin)]

    def binary(self, target):
        binary = self.folder / behind(self.link_command(target), "-o")
        if not binary.exists():
            raise Unusable(f"{binary} is not there: cmake --build {self.folder} --target {target}")
        return binary


def behind(words, flag):
    return words[words.index(flag) + 1] if flag in words else None


def run_checked(words, build, what):
    done = subprocess.run(words, cwd=build.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Unusable(f"{what}: {done.stdout}")


def linked(mutation, build, folder):
    """The test's binary with the mistake, made in `folder`."""
    source = ROOT / mutation.file
    copy, out, binary = folder / source.name, folder / "mutated.o", folder / mutation.target
    copy.write_text(mutated(mutation))
    words = list(build.compile_command(mutation.target, source))
    for flag in ("-MT", "-MF"):
        del words[words.index(flag) : words.index(flag) + 2]
    words.remove("-MD")
    words[words.index("-o") + 1] = str(out)
    words[words.index("-c") + 1] = str(copy)
    run_checked([*words, "-O0", "-g0"], build, "does not compile")
    words = list(build.link_command(mutation.target))
    place = words.index("-o")
    words[place : place + 2] = ["-o", str(binary), str(out), "-Wl,-z,muldefs"]
    run_checked(words, build, "does not link")
    return binary


def mutated(mutation):
    """The text of the file with the mistake."""
    places = places_of(mutation.before, (ROOT / mutation.file).read_text())
    if len(places) != 1:
        raise Unusable(f"{mutation.file}: this stands there {len(places)} times, not once: {mutation.before}")
    return mutated_text(places[0], mutation.after)


def tests_of(binary):
    """The names of a binary's tests, as --gtest_filter has them."""
    names, suite = set(), ""
    listed = subprocess.run([binary, "--gtest_list_tests", "--gtest_filter=*"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            names.add(suite + name.strip())
        else:
            suite = name
    return names


def run_test(binary, mutation, folder):
    """Whether the test passes, and what it says. It has to be run: a filter that finds nothing passes, too."""
    try:
        run = subprocess.run([binary, f"--gtest_filter={mutation.test}"], cwd=folder, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, errors="replace", timeout=HANGS_AFTER_S)
    except subprocess.TimeoutExpired:
        raise Unusable(f"{mutation.test} has not ended after {HANGS_AFTER_S} s") from None
    if f"[ RUN      ] {mutation.test}\n" not in run.stdout:
        raise Unusable(f"{mutation.test} is not run: {run.stdout}")
    return run.returncode == 0, run.stdout


def is_caught(mutation, build):
    folder = build.folder / "mutations" / re.sub(r"\W+", "_", mutation.name)
    folder.mkdir(parents=True, exist_ok=True)
    passes, said = run_test(build.binary(mutation.target), mutation, folder)
    if not passes:
        raise Unusable(f"{mutation.test} fails without the mistake: {said}")
    binary = linked(mutation, build, folder)
    passes, said = run_test(binary, mutation, folder)
    binary.unlink()
    return not passes


def check_table(mutations, build):
    """Of all rows, whichever are run: so a change that takes away a row's text or test is told at once."""
    names = [mutation.name for mutation in mutations]
    if len(set(names)) != len(names):
        raise Unusable(f"two rows have one name: {sorted(name for name in set(names) if names.count(name) > 1)}")
    tests = {target: tests_of(build.binary(target)) for target in {mutation.target for mutation in mutations}}
    for mutation in mutations:
        mutated(mutation)
        if mutation.test not in tests[mutation.target]:
            raise Unusable(f"{mutation.name}: {mutation.target} has no test {mutation.test}")


def of_day(mutations, day):
    return mutations[day % NUM_DAYS :: NUM_DAYS]


def chosen(mutations, args):
    if args.all:
        return mutations
    if not args.names:
        return of_day(mutations, datetime.date.today().toordinal())
    unknown = set(args.names) - {mutation.name for mutation in mutations}
    if unknown:
        raise Unusable(f"expected names of {ROOT / 'tests/mutations/mutations.py'}, got {sorted(unknown)}")
    return [mutation for mutation in mutations if mutation.name in args.names]


def line_of(mutation, build, given_build):
    """What came of a mistake, and the line that tells it."""
    started = time.monotonic()
    try:
        caught = is_caught(mutation, build)
    except Unusable as error:
        return 2, f"unusable  {mutation.name}: {error}"
    if caught:
        return 0, f"caught    {mutation.name} ({time.monotonic() - started:.1f} s)"
    again = shlex.join([".venv/bin/python", "tests/mutations/run_mutations.py", given_build, mutation.name])
    return 1, f"MISSED    {mutation.name}: {mutation.file}, {mutation.test} passes; again: {again}"


def main(arguments, mutations=MUTATIONS):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args(arguments)
    build = Build(args.build)
    try:
        check_table(mutations, build)
        rows = chosen(mutations, args)
    except Unusable as error:
        print(f"mutations: {error}")
        return 2
    worst = 0
    with concurrent.futures.ThreadPoolExecutor(NUM_WORKERS) as workers:
        for status, line in workers.map(lambda mutation: line_of(mutation, build, args.build), rows):
            print(line, flush=True)
            worst = max(worst, status)
    print(f"mutations: {len(rows)} of {len(mutations)}")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
