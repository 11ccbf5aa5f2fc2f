"""A reverse proxy as people put before a server: below a path of its own, which it may take away, and with the Host it was asked by or not."""

import http.client
import http.server
import threading


class ReverseProxy:
    """Passes what it is asked below `path` on to `port`; anything else is a 404 of its own."""

    def __init__(self, port, path, *, strips, keeps_host):
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler(port, path, strips, keeps_host))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _handler(self, port, path, strips, keeps_host):
        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                self.pass_on(None)

            def do_POST(self):
                self.pass_on(self.rfile.read(int(self.headers["Content-Length"])))

            def pass_on(self, body):
                if self.path != path and not self.path.startswith(path + "/"):
                    self.send_error(404)
                    return
                headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
                if not keeps_host:
                    headers["Host"] = f"127.0.0.1:{port}"
                upstream = http.client.HTTPConnection("127.0.0.1", port)
                target = (self.path.removeprefix(path) or "/") if strips else self.path
                upstream.request(self.command, target, body, headers)
                answer = upstream.getresponse()
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
                upstream.close()

        return Handler
