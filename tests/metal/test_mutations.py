"""A kernel with a mistake in it is seen each time: a barrier, a mask, a bound taken away, or a sum in another order.

Shows what the cases of ops and the emulator's checks are worth. Two mistakes at a time: a copy of the file with the
mistake comes ahead of the right one, the kernels are compiled anew, and op_cases_driver.cc runs some of the op's cases.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import pytest
from mutations import MUTATIONS, Check

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from mutated_text import mutated_text, places_of  # noqa: E402

ROOT = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"])
OPS = ROOT / "src/ops"
DRIVER = os.environ["PAGODA_METAL_OP_CASES"]
CLANG = os.environ["PAGODA_CLANG"]
FLAGS = os.environ["PAGODA_METAL_FLAGS"].split()  # of traced builds
KERNELS = pathlib.Path(os.environ["PAGODA_METAL_KERNELS"])  # the folder of traced builds of the right kernels
NEEDED = {  # other ops' kernels, by the cases of an op
    "apply_penalties": ("count_tokens",),
    "expert_gated_linear": ("group_by_expert", "select_rows"),
    "expert_linear": ("group_by_expert",),
    "rope_kv_write": ("rope",),
}
HANGS_AFTER_S = 600


def library_of_build(op, folder):
    out = folder / f"{op}.so"
    subprocess.run([CLANG, "-shared", KERNELS / f"{op}_kernels_traced.o", "-o", out], check=True)
    return out


def run_cases(op, libraries, cases, units):
    """The driver's status, and what it says."""
    command = [DRIVER, op, "--units", units, "--kernels", *libraries, "--only", *cases]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=HANGS_AFTER_S)
    return run.returncode, run.stdout


def other_libraries(op, folder):
    return [library_of_build(name, folder) for name in ("matrix_units", *NEEDED.get(op, ()))]


def mutated(mutation):
    """The file with the mistake: its name, and its text."""
    files = sorted((OPS / mutation.folder).glob("*.metal*"))
    places = [(file, place) for file in files for place in places_of(mutation.before, file.read_text())]
    assert len(places) == 1, f"{OPS / mutation.folder}: this stands there {len(places)} times, not once: {mutation.before}"
    file, place = places[0]
    return file.name, mutated_text(place, mutation.after)


def compiled(mutation, folder):
    """The library of the op's kernels with the mistake."""
    name, text = mutated(mutation)
    copy = folder / "ops" / mutation.folder
    copy.mkdir(parents=True)
    (copy / name).write_text(text)
    source = ROOT / f"tests/metal/kernels/{mutation.op}_kernels.cc"
    if mutation.kernels:
        registrations = "".join(f"PAGODA_REGISTER_KERNEL({kernel})\n" for kernel in mutation.kernels)
        source = folder / "kernels.cc"
        source.write_text(f'#include "ops/{mutation.op}/{mutation.op}.metal"\n'
                          f'#include "tests/metal/emulator/register_kernel.h"\n{registrations}')
    out = folder / "mutated.so"
    command = [CLANG, f"-I{folder}", *FLAGS, "-shared", source, "-o", out]
    compiler = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert compiler.returncode == 0, compiler.stderr
    return out


def outcome_of(mutation, folder):
    folder.mkdir()
    libraries = [*other_libraries(mutation.op, folder), compiled(mutation, folder)]
    return run_cases(mutation.op, libraries, mutation.cases, mutation.units)


def outcome_of_build(op, units, folder):
    folder.mkdir()
    libraries = [*other_libraries(op, folder), library_of_build(op, folder)]
    cases = dict.fromkeys(case for mutation in MUTATIONS if mutation.op == op for case in mutation.cases)
    return run_cases(op, libraries, cases, units)


RIGHT = list(dict.fromkeys((mutation.op, mutation.units) for mutation in MUTATIONS))


@pytest.fixture(scope="session")
def outcomes(request, tmp_path_factory):
    """What came of each test's run, by the test's name; all start at once."""
    folder = tmp_path_factory.mktemp("mutations")
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        started = {}
        for number, item in enumerate(request.session.items):
            values = item.callspec.params
            run = outcome_of if "mutation" in values else outcome_of_build
            started[item.name] = workers.submit(run, *values.values(), folder / str(number))
        yield started
        for future in started.values():
            future.cancel()


def name_of(mutation):
    return f"{mutation.op}-{mutation.what}-{mutation.units}".replace(" ", "_")


@pytest.mark.parametrize(("op", "units"), RIGHT)
def test_the_right_kernels_pass(op, units, outcomes, request):
    status, said = outcomes[request.node.name].result()
    assert status == 0, said


@pytest.mark.parametrize("mutation", MUTATIONS, ids=name_of)
def test_a_mistake_is_seen(mutation, outcomes, request):
    status, said = outcomes[request.node.name].result()
    assert status == 1, f"nothing is seen (status {status}): {said}"
    expected = set(mutation.seen_by)
    if Check.OUTSIDE in expected:  # an access out of bounds may meet what somebody else has, first
        expected |= {Check.UNWRITTEN, Check.RACE, Check.RACE_OF_GROUPS}
    seen_by = [check.name for check in expected if re.search(check.value, said)]
    assert seen_by, f"expected {sorted(check.name for check in expected)}, got: {said}"
