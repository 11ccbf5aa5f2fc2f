"""What run_mutations.py takes for a mistake that a test sees, over a toy of two files and a GoogleTest binary."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import run_mutations  # noqa: E402
from mutations import MUTATIONS, Mutation  # noqa: E402

SOURCES = {
    "half.cc": "int half(int n) {\n  const int result =\n      n / 2;\n  return result;\n}\n",
    "twice.cc": "int half(int n);\nint twice(int n) { return 2 * n + half(0) + half(0); }\n",
    "toy_test.cc": """#include <gtest/gtest.h>
int half(int n);
int twice(int n);
TEST(Toy, Halves) { EXPECT_EQ(half(4), 2); }
TEST(Toy, Doubles) { EXPECT_EQ(twice(4), 8); }
TEST(Toy, Fails) { EXPECT_EQ(twice(4), 9); }
""",
    "build/Unity/both.cc": '#include "{root}/half.cc"\n#include "{root}/twice.cc"\n',
}
# As CMake has ninja make a test: its files alone, or those of its library in one unit.
NINJA = """rule compile
  command = {compiler} -MD -MT $out -MF $out.d -o $out -c $in
rule archive
  command = : && ar qc $out $in && :
rule link
  command = : && {compiler} $objects -o $out $libraries -lgtest_main -lgtest -lpthread && :
build toy_test.o: compile {root}/toy_test.cc
build half.o: compile {root}/half.cc
build twice.o: compile {root}/twice.cc
build both.o: compile {root}/build/Unity/both.cc
build alone.a: archive half.o twice.o
build unit.a: archive both.o
build alone: link toy_test.o alone.a
  objects = toy_test.o
  libraries = alone.a
build unit: link toy_test.o unit.a
  objects = toy_test.o
  libraries = unit.a
"""


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    root = tmp_path_factory.mktemp("toy")
    (root / "build/Unity").mkdir(parents=True)
    for name, text in SOURCES.items():
        (root / name).write_text(text.replace("{root}", str(root)))
    (root / "build/build.ninja").write_text(NINJA.format(root=root, compiler=os.environ["PAGODA_CXX"]))
    subprocess.run(["ninja", "-C", root / "build", "alone", "unit"], check=True, stdout=subprocess.DEVNULL)
    return root


@pytest.fixture
def run(toy, monkeypatch, capsys):
    """Runs all rows over the toy; returns the status, and what is printed."""
    monkeypatch.setattr(run_mutations, "ROOT", toy)

    def run(*mutations, choice=("--all",)):
        status = run_mutations.main([str(toy / "build"), *choice], mutations)
        return status, capsys.readouterr().out

    return run


def mistake(before="n / 2", after="n / 2 + 1", name="a half", file="half.cc", target="alone", test="Toy.Halves"):
    return Mutation(name, file, before, after, target, test)


@pytest.mark.parametrize("target", ["alone", "unit"])
def test_a_mistake_that_the_test_sees_is_caught(run, toy, target):
    status, said = run(mistake(target=target), mistake("2 * n", "2 + n", "twice", "twice.cc", target, "Toy.Doubles"),
                       mistake("const int result = n / 2; return result;", "return n;", "white space", target=target),
                       mistake("n / 2", "(__builtin_trap(), 0)", "one that ends the process", target=target))
    assert (status, said.count("caught  ")) == (0, 4), said
    assert (toy / "half.cc").read_text() == SOURCES["half.cc"]


@pytest.mark.parametrize("target", ["alone", "unit"])
def test_one_that_it_does_not_see_is_missed(run, toy, target):
    status, said = run(mistake(target=target), mistake("n / 2", "(n + 1) / 2", "an odd number", target=target))
    assert status == 1
    assert f"again: .venv/bin/python tests/mutations/run_mutations.py {toy}/build 'an odd number'\n" in said


@pytest.mark.parametrize(("wrong", "says"), [
    (mistake("n / 3"), "0 times, not once"),
    (mistake("half(0)", file="twice.cc"), "2 times, not once"),
    (mistake(test="Toy.Quarters"), "has no test Toy.Quarters"),
    (mistake(test="Toy.*"), "has no test Toy.*"),
    (mistake(test="Toy.Fails"), "Toy.Fails fails without the mistake"),
    (mistake(after="n / "), "does not compile"),
    (mistake(after="n; int missing(int); missing(n)"), "does not link"),
    (mistake("Halves", file="toy_test.cc", target="none"), "no target none"),
    (mistake(), "two rows have one name"),
])
def test_a_row_that_says_nothing_is_told(run, wrong, says):
    right = mistake()
    if says != "two rows have one name":
        wrong = wrong._replace(name="wrong")
    status, said = run(right, wrong)
    assert status == 2
    assert says in said


def test_rows_are_run_by_name(run):
    rows = [mistake(name=str(number)) for number in range(3)]
    status, said = run(*rows, choice=("1",))
    assert status == 0
    assert "caught    1 (" in said and "mutations: 1 of 3" in said
    assert run(*rows, choice=("4",))[0] == 2


def test_eight_days_in_a_row_have_all():
    for first in (0, 739_950):
        days = [run_mutations.of_day(MUTATIONS, first + day) for day in range(8)]
        assert sorted(row for rows in days for row in rows) == sorted(MUTATIONS)
        assert {len(rows) for rows in days} == {5}
