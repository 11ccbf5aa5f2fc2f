"""`pagoda serve` as a child process, with a small checkpoint unless told otherwise."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from waiting import HANGS_AFTER_S

PAGODA = os.environ["PAGODA_BINARY"]
TINY = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "tests/golden/data/tiny-llama"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PagodaServer:
    """Listens when it is made. `flags` are those of `pagoda serve`, with underscores, lists where they are given more than once and
    True where they take no value; its log is `log`."""

    def __init__(self, model=TINY, log=None, url_host="127.0.0.1", **flags):
        self._terminated = False
        flags = {"port": 0, "device": "cpu", "threads": 2, **flags}
        command = [PAGODA, "serve", str(model)]
        for name, value in flags.items():
            flag = "--" + name.replace("_", "-")
            for each in value if isinstance(value, list) else [value]:
                command += [flag] if each is True else [flag, str(each)]
        self._log = None if log else tempfile.NamedTemporaryFile(prefix="pagoda-serve-", suffix=".log")
        self.log = pathlib.Path(log or self._log.name)
        with open(self.log, "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        self.port = flags["port"] or self._port_of_log()
        self.url = f"http://{url_host}:{self.port}"
        self._wait_until_healthy()

    def _port_of_log(self):
        for _ in range(100 * HANGS_AFTER_S):
            found = re.search(r"listening on http://[^ ]*:(\d+)", self.log.read_text())
            if found:
                return int(found[1])
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.01)
        raise AssertionError(self.log.read_text())

    def _wait_until_healthy(self):
        for _ in range(100 * HANGS_AFTER_S):
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=HANGS_AFTER_S) as answer:
                    assert answer.status == 200
                    return
            except OSError:
                assert self.process.poll() is None, "it ended"
                time.sleep(0.01)
        raise AssertionError("it never listened")

    def post(self, path, body):
        """The answer's status and JSON."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def metrics(self):
        """Figures of /metrics without labels of their own, by name."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=HANGS_AFTER_S) as answer:
            text = answer.read().decode()
        found = re.findall(r'^pagoda:(\w+)\{model_name="[^"]*"\} (\S+)$', text, re.MULTILINE)
        return {name: float(value) for name, value in found}

    def free_share(self):
        """Of the KV blocks."""
        return 1 - self.metrics()["kv_cache_usage_perc"]

    def resident_bytes(self):
        return self._status("VmRSS") * 1024

    def num_threads(self):
        return self._status("Threads")

    def num_descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _status(self, name):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[1])

    def is_running(self):
        return self.process.poll() is None

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        self._terminated = True  # a second signal would end it at once

    def close(self):
        """Ends it as a user would; a server that does not end by itself fails the test."""
        if self.is_running() and not self._terminated:
            self.terminate()
        try:
            code = self.process.wait(timeout=HANGS_AFTER_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert code == 0, self.log.read_text()
