"""Behind a failure of any test here stands the command that runs it again, from the project's root."""

import os
import shlex
import sys


def pytest_terminal_summary(terminalreporter):
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("PAGODA_")]
    program = [os.path.relpath(sys.executable), "-m", "pytest"]
    for report in [*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")]:
        terminalreporter.write_line("again: " + shlex.join([*settings, *program, report.nodeid]))
