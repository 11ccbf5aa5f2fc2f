"""run_tests.py: what makes a test run again, and that nothing else does."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).with_name("run_tests.py")
# Lists and runs the tests of build/tests.json, and writes the names of those that ran to build/ran.json.
CTEST = """#!/usr/bin/env python3
import json, pathlib, re, sys
root = pathlib.Path(__file__).parents[1] / "build"
tests = json.loads((root / "tests.json").read_text())
if "--show-only=json-v1" in sys.argv:
    print(json.dumps({"tests": [{"name": name, "command": test["command"], "properties": [
        {"name": "ENVIRONMENT", "value": test.get("environment", [])}]} for name, test in tests.items()]}))
    sys.exit()
left_out = sys.argv[sys.argv.index("--exclude-regex") + 1] if "--exclude-regex" in sys.argv else "$^"
ran = [name for name in tests if not re.search(left_out, name)]
(root / "ran.json").write_text(json.dumps(ran))
status = {name: "fail" if tests[name].get("fails") else "run" for name in ran}
cases = "".join(f'<testcase name="{name}" status="{status[name]}"/>' for name in ran)
pathlib.Path(sys.argv[sys.argv.index("--output-junit") + 1]).write_text(f"<testsuite>{cases}</testsuite>")
sys.exit(8 if "fail" in status.values() else 0)
"""


class RunTestsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.write("tools/run_tests.py", SCRIPT.read_text())
        self.write("bin/ctest", CTEST)
        (self.root / "bin/ctest").chmod(stat.S_IRWXU)
        self.write("build/release/ops_test", "binary")
        self.write("build/release/pagoda", "program")
        self.write("tests/data.json", "1")
        self.write("tests/test_server.py", "pass")
        self.write("src/ops.cc", "code")
        self.tests = {
            "ops": {"command": [str(self.root / "build/release/ops_test")]},
            "server": {"command": ["python", "-m", "pytest", "tests/test_server.py"],
                       "environment": [f"PAGODA_BINARY={self.root}/build/release/pagoda"]},
            "rules": {"command": ["python", "check.py"]}}

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ran(self, status=0, **variables):
        """The tests that a run does not leave out."""
        self.write("build/tests.json", json.dumps(self.tests))
        self.write("build/ran.json", "[]")
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                       "XDG_CACHE_HOME": str(self.root / "build/cache"), **variables}
        ended = subprocess.run([sys.executable, self.root / "tools/run_tests.py", "release"], env=environment,
                               stdout=subprocess.DEVNULL)
        self.assertEqual(ended.returncode, status)
        return json.loads((self.root / "build/ran.json").read_text())

    def test_what_passed_is_not_run_again(self):
        self.assertEqual(self.ran(), ["ops", "server", "rules"])
        self.assertEqual(self.ran(), ["rules"])
        del self.tests["rules"]
        self.assertEqual(self.ran(), [])

    def test_a_failed_test_runs_again(self):
        self.tests["ops"]["fails"] = True
        self.assertEqual(self.ran(status=8), ["ops", "server", "rules"])
        self.assertEqual(self.ran(status=8), ["ops", "rules"])

    def test_changes_run_what_depends_on_them(self):
        self.ran()
        for name, expected in [("build/release/ops_test", ["ops", "rules"]),
                               ("build/release/pagoda", ["server", "rules"]),
                               ("build/release/lib/libmlx.so", ["ops", "server", "rules"]),
                               ("build/setup-test.stamp", ["ops", "server", "rules"]),
                               ("build/cache/pagoda/model", ["ops", "server", "rules"]),
                               ("tests/data.json", ["ops", "server", "rules"]),
                               ("tests/support/hub.py", ["ops", "server", "rules"]),
                               ("tests/test_server.py", ["server", "rules"]),
                               ("src/ops.cc", ["server", "rules"])]:
            with self.subTest(name):
                self.write(name, "changed")
                self.assertEqual(self.ran(), expected)
                self.assertEqual(self.ran(), ["rules"])
        self.assertEqual(self.ran(PAGODA_CPU_ISA="avx2"), ["ops", "server", "rules"])
        self.tests["ops"]["command"].append("--gtest_filter=a")
        self.assertEqual(self.ran(PAGODA_CPU_ISA="avx2"), ["ops", "rules"])

    def test_without_the_record_everything_runs(self):
        self.ran()
        (self.root / "build/release/passed.json").unlink()
        self.assertEqual(self.ran(), ["ops", "server", "rules"])


if __name__ == "__main__":
    unittest.main()
