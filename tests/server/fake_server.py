"""pagoda_fake_server as a child process: the real HTTP server over a fake model (see tests/support/fake_model.h)."""

import os
import pathlib
import subprocess

from waiting import HANGS_AFTER_S


class FakeServer:
    """Runs from construction to close(), by TLS where it has a certificate. `api_key` and so on are its flags, with underscores."""

    def __init__(self, certificate=None, **flags):
        self.certificate = certificate
        if certificate:
            flags |= certificate.flags()
        command = [os.environ["PAGODA_FAKE_SERVER"]]
        for name, value in flags.items():
            flag = "--" + name.replace("_", "-")
            command += [flag] if value is True else [flag, str(value)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self._process.stdout.readline()
        assert line.startswith("port "), f"expected 'port N', got {line!r}"
        self.port = int(line.split()[1])
        self.url = f"https://localhost:{self.port}" if certificate else f"http://127.0.0.1:{self.port}"

    def num_cancelled(self):
        """Samples that were cancelled before they ended."""
        self._process.stdin.write("cancelled\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def resident_bytes(self):
        """The most so far, where the system tells; elsewhere what is resident now."""
        status = pathlib.Path(f"/proc/{self._process.pid}/status")
        if status.exists():
            line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
            return int(line.split()[1]) * 1024
        return self.resident_bytes_now()

    def resident_bytes_now(self):
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self._process.pid)], capture_output=True, text=True)
        return int(shown.stdout) * 1024

    def is_running(self):
        return self._process.poll() is None

    def close(self):
        """Ends it cleanly; a server that does not end by itself fails the test."""
        self._process.stdin.close()
        assert self._process.wait(timeout=HANGS_AFTER_S) == 0
