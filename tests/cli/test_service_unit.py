"""The unit for systemd as systemd reads it."""

import os
import pathlib
import subprocess

UNIT = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "packaging/pagoda.service.in"


def test_systemd_finds_nothing_wrong(tmp_path):
    unit = tmp_path / "pagoda.service"
    unit.write_text(UNIT.read_text().replace("@installed_prefix@", "/usr"))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=60, check=False)
    about_it = [line for line in (done.stdout + done.stderr).splitlines() if "pagoda" in line]
    assert (done.returncode, about_it) == (0, [])
