"""A server that a benchmark starts, loads and stops."""

import socket
import subprocess
import time
import urllib.error
import urllib.request

START_TIMEOUT_S = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RunningServer:
    """A server as a child process, from when it is healthy until the block ends."""

    def __init__(self, command, port, log):
        self.command = [str(word) for word in command]
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=10):
                    return self
            except (OSError, urllib.error.HTTPError):
                time.sleep(0.1)
        self.__exit__()
        raise OSError(f"{self.command[0]} did not come up: see {self.log}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
