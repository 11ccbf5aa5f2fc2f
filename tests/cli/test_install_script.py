"""The script that installs a release: filled in as the workflow does it, over files of a release that has a small program."""

import functools
import hashlib
import http.server
import os
import pathlib
import platform
import re
import subprocess
import tarfile
import threading

import pytest
import yaml

SOURCE = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"])
WORKFLOW = yaml.safe_load((SOURCE / ".github/workflows/release.yml").read_text())["jobs"]["publish"]["steps"]
NAME = f"pagoda-9.8.7-Linux-{platform.machine()}"


class Release:
    """The files of a release in a folder."""

    def __init__(self, folder):
        self.folder = folder
        program = folder / "program"
        (program / "bin").mkdir(parents=True)
        (program / "lib/pagoda").mkdir(parents=True)
        (program / "lib/pagoda/pagoda").write_text("#!/bin/sh\necho 9.8.7\n")
        (program / "lib/pagoda/pagoda").chmod(0o755)
        (program / "bin/pagoda").symlink_to("../lib/pagoda/pagoda")
        self.tarball = folder / f"{NAME}.tar.gz"
        (program / "lib/systemd/system").mkdir(parents=True)
        (program / "lib/systemd/system/pagoda.service").write_text("ExecStart=/usr/local/bin/pagoda serve\n")
        with tarfile.open(self.tarball, "w:gz") as packed:
            packed.add(program, NAME)
        (folder / f"{NAME}.deb").write_text("a package")
        (folder / "pagoda-9.8.7.tar.gz").write_text("sources")
        (folder / "source").symlink_to(SOURCE)
        fill, = (step["run"] for step in WORKFLOW if "install.sh.in" in step.get("run", ""))
        environment = {"GITHUB_SERVER_URL": "https://git.example", "GITHUB_REPOSITORY": "a/pagoda", "GITHUB_REF_NAME": "v9.8.7"}
        subprocess.run(["bash", "-euo", "pipefail", "-c", fill], cwd=folder, check=True, env={**os.environ, **environment})
        self.script = folder / "install.sh"

    def run(self, prefix, path="", url=None, **environment):
        return subprocess.run(["sh", self.script], capture_output=True, text=True, timeout=60, check=False, env={
            "HOME": str(self.folder / "home"), "PATH": f"{path}:{os.environ['PATH']}", "PREFIX": str(prefix),
            "PAGODA_RELEASE_URL": url or f"file://{self.folder}", **environment})

    def fake(self, name, words):
        """A folder for PATH with a program that prints these words."""
        folder = self.folder / f"fake-{name}"
        folder.mkdir()
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)
        return folder


@pytest.fixture
def release(tmp_path):
    return Release(tmp_path)


def test_the_workflow_fills_the_script_in(release):
    text = release.script.read_text()
    assert "https://git.example/a/pagoda/releases/download/v9.8.7/install.sh" in text and not re.search(r"@[A-Z]+@", text)
    assert f"{hashlib.sha256(release.tarball.read_bytes()).hexdigest()}  {release.tarball.name}\n" in text
    published = WORKFLOW[-1]["run"]
    assert "install.sh" in published and "SHA256SUMS" in published
    subprocess.run(["sh", "-n", release.script], check=True)


def test_it_installs_over_an_earlier_release(release, tmp_path):
    prefix = tmp_path / "prefix"
    (prefix / "lib/pagoda/lib").mkdir(parents=True)
    (prefix / "lib/pagoda/lib/of-an-earlier-release.so").write_text("")
    (prefix / "bin").mkdir()
    (prefix / "bin/of-another").write_text("")
    done = release.run(prefix)
    assert done.returncode == 0, done.stderr
    assert f"9.8.7 is in {prefix}" in done.stderr and f"{prefix}/bin is not in PATH" in done.stderr
    assert subprocess.run([prefix / "bin/pagoda"], capture_output=True, text=True, check=True).stdout == "9.8.7\n"
    assert (prefix / "lib/systemd/system/pagoda.service").read_text() == f"ExecStart={prefix}/bin/pagoda serve\n"
    assert not (prefix / "lib/pagoda/lib").exists() and (prefix / "bin/of-another").exists()


def test_it_installs_by_http(release, tmp_path):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=release.folder)) as mirror:
        threading.Thread(target=mirror.serve_forever, daemon=True).start()
        done = release.run(tmp_path / "prefix", url=f"http://127.0.0.1:{mirror.server_port}")
        missing = release.run(tmp_path / "other", url=f"http://127.0.0.1:{mirror.server_port}/nowhere")
        mirror.shutdown()
    assert done.returncode == 0 and (tmp_path / "prefix/bin/pagoda").exists()
    assert missing.returncode == 1 and "could not be fetched" in missing.stderr and not (tmp_path / "other").exists()


def test_what_is_not_the_release_is_not_installed(release, tmp_path):
    with open(release.tarball, "ab") as tarball:
        tarball.write(b"more")
    refused = release.run(tmp_path / "prefix")
    assert refused.returncode == 1 and "its SHA-256 differs" in refused.stderr and not (tmp_path / "prefix").exists()
    # Half a script does nothing at all.
    release.script.write_bytes(release.script.read_bytes()[:-6])
    assert release.run(tmp_path / "prefix").stderr == "" and not (tmp_path / "prefix").exists()


def test_machines_that_it_is_not_for_are_told(release, tmp_path):
    prefix = tmp_path / "prefix"
    for path, flags, words in (
            (release.fake("getconf", "echo glibc 2.35"), {}, "C library 2.36 or later, got 2.35"),
            (release.fake("uname", '[ "$1" = -m ] && echo riscv64 || echo Linux'), {}, "no package of this release for riscv64"),
            ("", {"PREFIX": "a relative/one"}, "PREFIX: expected"),
            ("", {"PAGODA_PACKAGE": "rpm"}, "expected tarball or deb, got rpm"),
            (release.fake("id", "echo 1000"), {"PAGODA_PACKAGE": "deb"}, "is installed by root")):
        refused = release.run(prefix, path, **flags)
        assert refused.returncode == 1 and words in refused.stderr and not prefix.exists()
    apt = release.fake("apt-get", f"echo $* >{tmp_path}/asked")
    (apt / "id").write_text("#!/bin/sh\necho 0\n")
    (apt / "id").chmod(0o755)
    assert release.run(prefix, apt, PAGODA_PACKAGE="deb").returncode == 0
    assert re.fullmatch(rf"install -y /\S*/{NAME}\.deb\n", (tmp_path / "asked").read_text())
