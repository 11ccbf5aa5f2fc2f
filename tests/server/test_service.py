"""What systemd sees of the server: when it is ready and ends, and what its unit passes on."""

import os
import pathlib
import re
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
from certificate import Certificate
from pagoda_server import PAGODA, TINY, PagodaServer, free_port
from waiting import HANGS_AFTER_S, wait_for

UNIT = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "packaging/pagoda.service.in"


def status(url, context=None, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=HANGS_AFTER_S, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


@pytest.fixture
def unit(tmp_path):
    """The unit as it is installed below a folder, which has what is in /etc and the program too."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pagoda").symlink_to(PAGODA)
    made = tmp_path / "pagoda.service"
    made.write_text(UNIT.read_text().replace("@installed_prefix@", str(tmp_path)).replace("/etc/", f"{tmp_path}/etc/"))
    return made


@pytest.mark.parametrize("abstract", [False, True])
def test_it_is_ready_once_its_model_answers(tmp_path, monkeypatch, abstract):
    name = f"@pagoda-test-{os.getpid()}" if abstract else str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(HANGS_AFTER_S)
        manager.bind(name.replace("@", "\0", 1))
        process = subprocess.Popen([PAGODA, "serve", str(TINY), "--port", str(port), "--device", "cpu"], stderr=subprocess.DEVNULL)
        assert manager.recv(4096).splitlines() == [b"READY=1", b"STATUS=serving tiny-llama"]
        assert status(f"http://127.0.0.1:{port}/health") == 200
        process.terminate()
        assert manager.recv(4096).splitlines()[0] == b"STOPPING=1"
        assert process.wait(timeout=HANGS_AFTER_S) == 0
        manager.settimeout(0)
        with pytest.raises(BlockingIOError):
            manager.recv(1)


@pytest.mark.parametrize("name", ["/nobody/listens/here", "relative", "/" + 200 * "a"])
def test_a_manager_that_cannot_be_told_stops_nothing(monkeypatch, name):
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    server = PagodaServer()
    wait_for(lambda: "NOTIFY_SOCKET" in server.log.read_text())
    server.close()


def test_the_unit_passes_credentials_and_flags_on(unit, tmp_path):
    text = unit.read_text()
    assert re.search(r"^Type=notify$", text, re.MULTILINE) and re.search(r"^UMask=0077$", text, re.MULTILINE)
    credentials = re.findall(r"^LoadCredential=(.*)$", text, re.MULTILINE)
    folder = tmp_path / "credentials"
    folder.mkdir()
    certificate = Certificate(tmp_path)
    files = {"api-keys": "secret\n", "tls-certificate": certificate.file.read_text(), "tls-key": certificate.key.read_text()}
    assert credentials == [f"pagoda.{name}" for name in files]
    (tmp_path / "etc/pagoda").mkdir(parents=True)
    port = free_port()
    (tmp_path / "etc/pagoda/pagoda.toml").write_text(f"port = {port}\n")
    command, = re.findall(r"^ExecStart=/bin/sh -c '([^']*)'$", text, re.MULTILINE)
    environment = {**os.environ, "PAGODA_MODEL": str(TINY), "PAGODA_DEVICE": "cpu", "CREDENTIALS_DIRECTORY": str(folder),
                   "NOTIFY_SOCKET": str(tmp_path / "notify")}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(HANGS_AFTER_S)
        manager.bind(str(tmp_path / "notify"))
        for given, url, expected in (((), "http://127.0.0.1", 200), (("api-keys",), "http://127.0.0.1", 401),
                                     (tuple(files), "https://localhost", 401)):
            for name in given:
                (folder / f"pagoda.{name}").write_text(files[name])
            process = subprocess.Popen(["/bin/sh", "-c", command], env=environment, stderr=subprocess.DEVNULL)
            assert manager.recv(4096).startswith(b"READY=1")
            models = f"{url}:{port}/v1/models"
            assert status(models, certificate.trusted()) == expected
            assert status(models, certificate.trusted(), Authorization="Bearer secret") == 200
            process.terminate()
            assert manager.recv(4096).startswith(b"STOPPING=1")
            assert process.wait(timeout=HANGS_AFTER_S) == 0


def test_a_secret_that_is_not_handed_over_is_no_service_without_it(unit, tmp_path):
    check, = re.findall(r"^ExecStartPre=\+/bin/sh -c '([^']*)'$", unit.read_text(), re.MULTILINE)
    folder = tmp_path / "credentials"

    def run():
        return subprocess.run(["/bin/sh", "-c", check], env={"CREDENTIALS_DIRECTORY": str(folder)}, capture_output=True, text=True)

    assert run().returncode == 0
    folder.mkdir()
    store = tmp_path / "etc/credstore"
    store.mkdir(parents=True)
    (store / "of-another").write_text("a")
    assert run().returncode == 0
    for place in (store, folder):
        (place / "pagoda.api-keys").write_text("secret\n")
    assert run().returncode == 0
    (store / "pagoda.api-key").write_text("secret\n")
    refused = run()
    assert refused.returncode == 1 and "pagoda.api-key was not handed over" in refused.stderr
