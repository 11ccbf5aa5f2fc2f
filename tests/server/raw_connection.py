"""HTTP by hand, for requests that no client's library would send."""

import json
import socket
import time

from waiting import HANGS_AFTER_S


class RawConnection:
    """A socket that speaks just enough HTTP to be rude in it, by TLS where the server's certificate is given."""

    def __init__(self, port, certificate=None):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=HANGS_AFTER_S)
        if certificate:
            self._socket = certificate.trusted().wrap_socket(self._socket, server_hostname="localhost")
        self._file = self._socket.makefile("rb")

    def send(self, data):
        self._socket.sendall(data)

    def post(self, path, body, headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        head = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
        self.send("\r\n".join(head).encode() + b"\r\n\r\n" + body)

    def read_head(self):
        lines = []
        while True:
            line = self._file.readline().decode().rstrip("\r\n")
            if not line:
                break
            lines.append(line)
        assert lines, "the server closed without an answer"
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        return int(lines[0].split()[1]), headers

    def read(self):
        status, headers = self.read_head()
        return status, json.loads(self._file.read(int(headers["content-length"])))

    def read_line(self):
        return self._file.readline()

    def closed_by_server(self):
        return self._file.read(1) == b""

    def close(self):
        self._file.close()
        self._socket.close()


def ask(port, path, body):
    """The status and the JSON that answer one POST on a connection of its own."""
    connection = RawConnection(port)
    connection.post(path, body)
    answer = connection.read()
    connection.close()
    return answer


def seconds_of(port, path, body, statuses=(200,)):
    """How long that takes; the status is one of these."""
    start = time.monotonic()
    status, answer = ask(port, path, body)
    assert status in statuses, answer
    return time.monotonic() - start
