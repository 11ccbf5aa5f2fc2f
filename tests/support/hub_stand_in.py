"""A stand-in of a model hub on loopback: its API for revisions, and files with ranges. Prints its two ports and serves
until its standard input ends.

Every repository is ORG/NAME with the same made files; the name says what goes wrong:

  whole        nothing
  cut          every answer with a file's bytes ends after 100,000 of them
  cut-for-good the same, and later answers carry nothing
  no-ranges    ranges are ignored: 200 and the whole file
  lying-range  another range than the one asked for
  wrong-bytes  weights that are not what their digest says
  longer       weights that are longer than their size says
  private      401 unless the token is "secret"
  moved        files are at the second port, which counts as another host
  traversal    one file is called ../escaped.json
  huge         weights of 2^60 bytes, says the list
  beyond       weights of 2^62 bytes, each of them
  busy         503
  long-header, many-headers
               400,000 bytes of header before the list: a line, or lines of 1,000
  no-weights, no-digest, not-json, gguf: what they say

GET /requests gives what was asked so far, as a list of {"port", "path", "range", "authorization"}.
"""

import hashlib
import http.server
import json
import sys
import threading

COMMIT = hashlib.sha1(b"a commit").hexdigest()
CUT_AFTER = 100_000


def made_bytes(name, size):
    block = hashlib.sha256(name.encode()).digest()
    return (block * (size // len(block) + 1))[:size]


SMALL = {
    "config.json": b'{"model_type": "llama"}\n',
    "generation_config.json": b"{}",
    "tokenizer.json": made_bytes("tokenizer", 70_000),
    "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "README.md": b"not needed",
    "empty.txt": b"",
    "onnx/model.safetensors": b"another folder's",
}
SAFETENSORS = {
    "model-00001-of-00002.safetensors": made_bytes("one", 350_000),
    "model-00002-of-00002.safetensors": made_bytes("two", 1_000),
    "model.safetensors.index.json": b'{"weight_map": {}}',
    "consolidated.safetensors": made_bytes("again", 5_000),
}
GGUF = {
    "m.Q2_K.gguf": b"small",
    "m.q8_0.gguf": made_bytes("q8", 2_000),
    "m.BF16.gguf": b"larger",
    "Q4_K_M/m-Q4_K_M-00001-of-00002.gguf": made_bytes("q4", 1_000),
    "Q4_K_M/m-Q4_K_M-00002-of-00002.gguf": made_bytes("q4 again", 200),
}


def files_of(name):
    if name == "no-weights":
        return SMALL
    return SMALL | (GGUF if name == "gguf" else SAFETENSORS)


def listing(name):
    siblings = []
    for path, data in files_of(name).items():
        entry = {"rfilename": path, "size": len(data)}
        if path.endswith((".safetensors", ".gguf")):
            entry["size"] = {"huge": 2**60, "beyond": 2**62}.get(name, len(data))
            entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        else:
            entry["blobId"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        if name == "no-digest":
            entry.pop("lfs", None)
        siblings.append(entry)
    if name == "traversal":
        siblings.append({"rfilename": "../escaped.json", "size": 1, "blobId": "0" * 40})
    return json.dumps({"sha": COMMIT, "siblings": siblings}).encode()


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    other_port = 0  # where `moved` sends to
    requests = []
    answers = {}  # how often a path was answered
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def do_GET(self):
        path = self.path.partition("?")[0]
        record = {
            "port": self.server.server_port,
            "path": path,
            "range": self.headers.get("Range"),
            "authorization": self.headers.get("Authorization"),
        }
        if path == "/requests":
            return self.answer(200, json.dumps(self.requests).encode())
        with self.lock:
            self.requests.append(record)
            self.answers[path] = self.answers.get(path, 0) + 1
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) >= 6 and parts[4] == "revision":
            return self.revision(parts[3], "/".join(parts[5:]), path)
        if len(parts) >= 5 and parts[2] == "resolve" and parts[3] == COMMIT:
            return self.file(parts[1], "/".join(parts[4:]), path)
        return self.answer(404, b"no such thing")

    def revision(self, name, revision, path):
        if name == "gone" or revision not in ("main", "v1", COMMIT):
            return self.answer(404, b'{"error": "not found"}')
        if name == "private" and self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, b'{"error": "who are you?"}')
        if name == "busy":
            return self.answer(503, b"")
        more = {"long-header": [400_000], "many-headers": [1_000] * 400}.get(name, [])
        return self.answer(200, b"<html>" if name == "not-json" else listing(name),
                           {f"X-{number}": "x" * size for number, size in enumerate(more)})

    def file(self, name, file, path):
        data = files_of(name).get(file)
        if data is None:
            return self.answer(404, b"no such file")
        if name == "moved" and self.server.server_port != Hub.other_port:
            return self.answer(302, b"", {"Location": f"http://localhost:{Hub.other_port}{path}"})
        if file.startswith("model-00001"):
            if name == "wrong-bytes":
                data = b"X" + data[1:]
            if name == "longer":
                data = data + b"and more"
        return self.part(name, data, path)

    def part(self, name, data, path):
        asked = self.headers.get("Range")
        if asked is None or name == "no-ranges":
            return self.answer(200, data, cut=self.cut(name, path))
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(data):
            return self.answer(416, b"")
        if name == "lying-range":
            start += 1
        header = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        return self.answer(206, data[start:], header, cut=self.cut(name, path))

    def cut(self, name, path):
        """After how many bytes this answer breaks off, or None."""
        if name in ("cut", "lying-range", "no-ranges"):
            # Without ranges every answer starts anew: only the first may break, or none would ever be whole.
            return CUT_AFTER if name == "cut" or self.answers[path] == 1 else None
        if name == "cut-for-good":
            return CUT_AFTER if self.answers[path] == 1 else 0
        return None

    def answer(self, status, body, headers=None, cut=None):
        self.send_response(status)
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if cut is not None and cut < len(body):
            self.wfile.write(body[:cut])
            self.close_connection = True
        else:
            self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients hang up on answers that they refuse
            super().handle_error(request, client_address)


def main():
    servers = [Server(("127.0.0.1", 0), Hub) for _ in range(2)]
    Hub.other_port = servers[1].server_port
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(servers[0].server_port, servers[1].server_port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
