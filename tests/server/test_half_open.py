"""Connections whose other end is gone without a word: they get probes after half a minute, not after the system's two hours.

Looks into the kernel's table of sockets, so on Linux alone.
"""

import os
import pathlib
import re
import socket

from fake_server import FakeServer
from stream_client import request_bytes
from waiting import wait_for


def test_a_silent_peer_is_asked_whether_it_is_there():
    fake = FakeServer()
    try:
        with socket.create_connection(("127.0.0.1", fake.port)) as connection:
            connection.sendall(request_bytes("/v1/completions", {"prompt": "think 60"}))
            mine = connection.getsockname()[1]
            pattern = re.compile(rf"^ *\d+: 0100007F:{fake.port:04X} 0100007F:{mine:04X} 01 \S+ (\d\d):([0-9A-F]+) ", re.MULTILINE)

            def probe_timer():
                found = pattern.search(pathlib.Path("/proc/net/tcp").read_text())
                return found and found[1] == "02" and int(found[2], 16) / os.sysconf("SC_CLK_TCK")

            wait_for(probe_timer)
            assert 1 < probe_timer() <= 31
    finally:
        fake.close()
