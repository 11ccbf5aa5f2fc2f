"""`make install` into a folder and `make package`, on Debian: what lies there runs, loads nothing from where it was built, and has
a service's files."""

import os
import pathlib
import shutil
import subprocess

import pytest
from library_paths import check_library_paths

BUILD = pathlib.Path(os.environ["PAGODA_BINARY"]).parent
PROJECT = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]).resolve()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("root")
    subprocess.run(["cmake", "--install", BUILD, "--component", "program", "--prefix", "/usr"], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, "DESTDIR": str(folder)})
    return folder


def run(root, *arguments, **environment):
    return subprocess.run([root / "usr/bin/pagoda", *arguments], capture_output=True, text=True, timeout=120, check=False,
                          stdin=subprocess.DEVNULL, cwd=root, env=environment)


def test_it_runs_from_there(root):
    assert run(root, "--version").stdout.strip()
    loaded = run(root, LD_TRACE_LOADED_OBJECTS="1").stdout
    assert str(PROJECT) not in loaded and ".venv" not in loaded and "not found" not in loaded
    check_library_paths(root)


def test_the_service_starts_what_is_installed(root):
    service = (root / "usr/lib/systemd/system/pagoda.service").read_text()
    assert "exec /usr/bin/pagoda serve" in service and "DynamicUser=yes" in service


def test_the_example_of_a_configuration_is_one(root):
    example = (root / "usr/share/doc/pagoda/pagoda.toml").read_text()
    whole = root / "whole.toml"
    # Its suggestions too, but for a file that is not there.
    lines = [line.removeprefix("# ") for line in example.splitlines() if "=" in line and "api-key-file" not in line]
    whole.write_text("\n".join(line for line in lines if not line.startswith("Flags")) + "\n")
    refused = run(root, "serve", "/no/such/model.gguf", "--config", whole, PAGODA_PORT="0", HOME=str(root))
    assert refused.returncode == 1 and "/no/such/model.gguf: no such file" in refused.stderr


def test_licences_are_there(root):
    documents = root / "usr/share/doc/pagoda"
    assert "Apache License" in (documents / "LICENSE").read_text()
    assert "Vitaly Puzrin" in (documents / "LICENSE.markdown-it").read_text()
    assert "Ron Kok" in (documents / "LICENSE.temml").read_text()


def test_shells_and_man_find_what_is_theirs(root):
    share = root / "usr/share"
    for shell, file in (("bash", "bash-completion/completions/pagoda"), ("zsh", "zsh/site-functions/_pagoda"),
                        ("fish", "fish/vendor_completions.d/pagoda.fish")):
        assert (share / file).read_text() == run(root, "completions", shell).stdout != ""
    assert (share / "man/man1/pagoda.1").read_text() == run(root, "man").stdout != ""


def test_packages_hold_the_program_where_it_belongs(tmp_path):
    subprocess.run(["cpack", "-B", tmp_path], check=True, stdout=subprocess.DEVNULL, cwd=BUILD)
    package, = tmp_path.glob("*.deb")
    held = subprocess.run(["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True).stdout
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path / "extracted"], check=True)
    check_library_paths(tmp_path / "extracted")
    assert " ./usr/bin/pagoda -> ../lib/pagoda/pagoda" in held and " ./usr/lib/systemd/system/pagoda.service" in held
    assert " ./usr/share/bash-completion/completions/pagoda" in held and " ./usr/share/man/man1/pagoda.1" in held
    tarball, = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(tarball, tmp_path)
    unpacked, = tmp_path.glob("pagoda-*/bin/pagoda")
    check_library_paths(unpacked.parent.parent)
    assert "exec /usr/local/bin/pagoda serve" in (unpacked.parents[1] / "lib/systemd/system/pagoda.service").read_text()
    loaded = subprocess.run([unpacked], capture_output=True, text=True, check=True, env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
    from_system = {line.split()[0] for line in loaded.splitlines() if "=>" in line and str(tmp_path) not in line}
    assert from_system <= {"libc.so.6", "libm.so.6", "libresolv.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
