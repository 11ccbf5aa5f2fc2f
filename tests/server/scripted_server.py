"""A server that hands out the real page and answers its requests as a test says: refusals, streams that stall or break, any model's name."""

import http.server
import json
import threading
import urllib.request


class Refusal:
    def __init__(self, status, message="no", code=""):
        self.status = status
        self.body = {"error": {"message": message, "code": code}}


class Broken:
    """In an answer's pieces: the connection closes here."""


class Usage(dict):
    """In an answer's pieces: an event of its own with these figures."""


class ScriptedServer:
    """`page_url` is a server that has the page. Each chat completion takes the next of `answers`: a Refusal, or the pieces of a
    text, each sent when the one before is; a dict among them is a delta as it stands, an Event is waited for. What
    was asked is in `asked`, as parsed JSON."""

    def __init__(self, page_url, model="fake-model"):
        with urllib.request.urlopen(page_url) as page:
            self.page = page.read()
            self.policy = page.headers["Content-Security-Policy"]
        self.model = model
        self.models_status = 200
        self.answers = []
        self.asked = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _handler(self):
        script = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def reply(self, status, content_type, body):
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Security-Policy", script.policy)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                if self.path == "/":
                    self.reply(200, "text/html; charset=utf-8", script.page)
                else:
                    models = {"data": [{"id": script.model, "max_model_len": 2048}]}
                    self.reply(script.models_status, "application/json", json.dumps(models).encode())

            def do_POST(self):
                script.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                answer = script.answers.pop(0)
                if isinstance(answer, Refusal):
                    self.reply(answer.status, "application/json", json.dumps(answer.body).encode())
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for piece in answer:
                    if piece is Broken:
                        return
                    if isinstance(piece, threading.Event):
                        piece.wait(600)
                    elif isinstance(piece, Usage):
                        self.event(usage=piece)
                    else:
                        delta = piece if isinstance(piece, dict) else {"content": piece}
                        self.event({"delta": delta, "finish_reason": None})
                self.event({"delta": {}, "finish_reason": "stop"})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, *choices, **others):
                try:
                    self.wfile.write(b"data: " + json.dumps({"choices": choices, **others}).encode() + b"\n\n")
                    self.wfile.flush()
                except OSError:
                    pass  # the page has stopped reading

        return Handler
