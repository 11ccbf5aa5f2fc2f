"""`pagoda bench serve` from a shell, against Pagoda's own server and against one of another make."""

import http.server
import json
import os
import pty
import signal
import ssl
import subprocess
import threading
import time
import xml.etree.ElementTree

import pytest
from certificate import Certificate
from pagoda_server import PAGODA, PagodaServer
from waiting import HANGS_AFTER_S, wait_for

LATENCIES = {f"{of}_{name}_ms" for of in ("mean", "median", "p99") for name in ("ttft", "tpot", "itl", "e2el")}
FIGURES = {"duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput",
           "output_throughput", "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests"} | LATENCIES


@pytest.fixture(scope="module")
def server():
    pagoda = PagodaServer()
    yield pagoda
    pagoda.close()


def bench(url, *args, code=0):
    done = subprocess.run([PAGODA, "bench", "serve", "--base-url", url, *map(str, args)], capture_output=True, text=True,
                          timeout=HANGS_AFTER_S, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done


def figures_of(url, *args):
    (line,) = bench(url, *args, "--json").stdout.splitlines()
    return json.loads(line)


def test_figures_agree_with_one_another(server):
    figures = figures_of(server.url, "--num-prompts", 30, "--input-len", 20, "--output-len", 9, "--max-concurrency", 4,
                         "--num-warmups", 2)
    assert FIGURES <= figures.keys()
    assert (figures["completed"], figures["failed"]) == (30, 0)
    assert (figures["total_input_tokens"], figures["total_output_tokens"]) == (600, 270)
    assert figures["request_throughput"] == pytest.approx(30 / figures["duration"])
    assert figures["output_throughput"] == pytest.approx(270 / figures["duration"])
    assert figures["total_token_throughput"] == pytest.approx(870 / figures["duration"])
    assert 1 <= figures["max_concurrent_requests"] <= 4
    assert 0 < figures["max_output_tokens_per_s"] <= 270
    assert 0 < figures["mean_ttft_ms"] <= figures["mean_e2el_ms"]
    assert figures["mean_e2el_ms"] == pytest.approx(figures["mean_ttft_ms"] + 8 * figures["mean_tpot_ms"])
    assert figures["median_itl_ms"] <= figures["p99_itl_ms"]


def test_requests_arrive_at_their_rate(server):
    figures = figures_of(server.url, "--num-prompts", 40, "--request-rate", 40, "--input-len", 4, "--output-len", 2)
    assert figures["completed"] == 40
    assert 0.5 < figures["duration"] < 10  # a second, and what the machine takes besides
    assert figures["request_rate"] == 40


def test_repeated_prefixes(server):
    figures = figures_of(server.url, "--num-prompts", 8, "--dataset-name", "prefix_repetition", "--input-len", 64,
                         "--prefix-len", 48, "--output-len", 2)
    assert (figures["completed"], figures["total_output_tokens"]) == (8, 16)
    assert (figures["dataset_name"], figures["total_input_tokens"]) == ("prefix_repetition", 8 * 64)


@pytest.mark.parametrize("name", ["sharegpt", "sonnet"])
def test_no_data_are_made_up_under_a_data_sets_name(name):
    stderr = bench("http://127.0.0.1:1", "--dataset-name", name, code=2).stderr
    assert f"[dataset-path] the data set {name} is a file: expected its path, got none" in stderr


def test_a_poem_in_a_file(server, tmp_path):
    path = tmp_path / "poem.txt"
    path.write_text("".join(f"the hour {i} of a day that is long\n" for i in range(50)))
    figures = figures_of(server.url, "--num-prompts", 8, "--dataset-name", "sonnet", "--dataset-path", path, "--input-len", 300,
                         "--output-len", 2)
    assert (figures["completed"], figures["total_output_tokens"]) == (8, 16)
    assert figures["total_input_tokens"] > 8


def test_a_sharegpt_file(server, tmp_path):
    path = tmp_path / "sharegpt.json"
    turns = [{"from": "human", "value": "Which river runs past the old mill?"}, {"from": "gpt", "value": "The slow one."}]
    path.write_text(json.dumps([{"id": str(i), "conversations": turns} for i in range(3)]))
    figures = figures_of(server.url, "--num-prompts", 5, "--dataset-name", "sharegpt", "--dataset-path", path)
    assert figures["completed"] == 5
    assert figures["total_output_tokens"] % 5 == 0 and figures["total_output_tokens"] >= 20


def test_the_printed_block_and_the_plot(server, tmp_path):
    plot = tmp_path / "latencies.svg"
    done = bench(server.url, "--num-prompts", 6, "--input-len", 4, "--output-len", 3, "--plot", plot)
    lines = done.stdout.splitlines()
    assert lines[0] == "============ Serving Benchmark Result ============" and lines[-1] == "=" * 50
    assert "Successful requests:                     6         " in lines
    assert "Total generated tokens:                  18        " in lines
    assert "---------------Inter-token Latency----------------" in lines
    circles = [element for element in xml.etree.ElementTree.parse(plot).iter() if element.tag.endswith("circle")]
    assert len(circles) == 3 * 6


def test_a_terminal_sees_progress(server):
    mine, theirs = pty.openpty()
    with subprocess.Popen([PAGODA, "bench", "serve", "--base-url", server.url, "--num-prompts", "5", "--input-len", "4",
                           "--output-len", "2", "--json"], stdout=subprocess.PIPE, stderr=theirs) as process:
        assert json.loads(process.stdout.read())["completed"] == 5
    os.close(theirs)
    seen = b""
    with open(mine, "rb", buffering=0) as terminal:
        while b"5 of 5 requests" not in seen:  # a terminal's bytes come in pieces; its end is an error
            seen += terminal.read(1 << 16)


def test_ctrl_c_prints_what_is_done(server):
    before = server.metrics()["finished_requests_total"]
    with subprocess.Popen([PAGODA, "bench", "serve", "--base-url", server.url, "--num-prompts", "10000", "--request-rate",
                           "100", "--input-len", "4", "--output-len", "2", "--json"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: server.metrics()["finished_requests_total"] >= before + 50)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANGS_AFTER_S)
    figures = json.loads(out)
    assert process.returncode == 1 and "interrupted" in err
    assert 10 < figures["completed"] < 10000 and figures["failed"] == 0
    assert figures["total_output_tokens"] == 2 * figures["completed"]


def test_the_client_is_cheap(server):
    """100 streams: a small part of one core."""
    before = os.times()
    start = time.monotonic()
    figures = figures_of(server.url, "--num-prompts", 200, "--max-concurrency", 100, "--input-len", 8, "--output-len", 100)
    assert figures["completed"] == 200
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{cpu_s:.2f} s of {time.monotonic() - start:.2f} s for {figures['total_output_tokens']} tokens")
    assert cpu_s < 60e-6 * figures["total_output_tokens"] + 0.2


class OtherServer(http.server.BaseHTTPRequestHandler):
    """No usage, no /tokenize, HTTP/1.0, events with spaces left out. `mode` says what else is odd."""

    mode = ""

    def log_message(self, *args):
        pass

    def do_GET(self):
        body = b"<html>" if self.mode == "html" else json.dumps({"data": [{"id": "other"}]}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/completions" or self.mode == "refuse":
            self.send_response(404 if self.mode != "refuse" else 400)
            self.end_headers()
            self.wfile.write(b'{"error": {"message": "not like this"}}')
            return
        assert isinstance(request["prompt"], str) and request["model"] == "other"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for _ in range(request["max_tokens"]):
            self.wfile.write(b'data:{"choices":[{"text":"x"}]}\n\n')
        self.wfile.write(b'data:{"choices":[{"text":"","finish_reason":"length"}]}\n\n')


@pytest.fixture
def other_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    OtherServer.mode = ""
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_server_without_usage_or_tokenizer(other_server):
    done = bench(other_server + "/v1", "--num-prompts", 4, "--input-len", 12, "--output-len", 5, "--json")
    figures = json.loads(done.stdout)
    assert (figures["completed"], figures["total_input_tokens"], figures["total_output_tokens"]) == (4, 48, 20)
    assert figures["model"] == "other"
    assert "without usage" in done.stderr


@pytest.fixture
def secure_server(tmp_path):
    """The same by TLS, with a certificate for localhost that it has signed itself: its URL, and that file."""
    certificate = Certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherServer)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    OtherServer.mode = ""
    yield f"https://localhost:{server.server_port}", certificate.file
    server.shutdown()
    server.server_close()


def test_https_with_a_certificate_that_is_trusted(secure_server, monkeypatch):
    url, certificate = secure_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    figures = figures_of(url, "--num-prompts", 4, "--input-len", 12, "--output-len", 5)
    assert (figures["completed"], figures["failed"], figures["total_output_tokens"]) == (4, 0, 20)
    elsewhere = url.replace("localhost", "127.0.0.1")  # for which the certificate is not
    assert "the server's certificate: IP address mismatch" in bench(elsewhere, code=1).stderr


def test_https_with_a_certificate_that_is_not(secure_server):
    url, _ = secure_server
    stderr = bench(url, "--num-prompts", 2, code=1).stderr
    assert f"{url}/v1/models: cannot connect: the server's certificate: self" in stderr
    assert figures_of(url, "--num-prompts", 2, "--input-len", 4, "--output-len", 2, "--insecure")["completed"] == 2


def test_https_where_none_is_spoken(other_server):
    stderr = bench(other_server.replace("http:", "https:"), code=1).stderr
    assert "cannot connect: expected TLS, got:" in stderr


def test_wrong_answers_are_one_line(other_server):
    OtherServer.mode = "refuse"
    done = bench(other_server, "--num-prompts", 3, code=1)
    assert "all of 3 requests failed, the first with: HTTP 400: not like this" in done.stderr
    OtherServer.mode = "html"
    assert "expected a list of models, got: <html>" in bench(other_server, code=1).stderr


def test_nobody_there_and_bad_usage(tmp_path):
    assert "cannot connect: Connection refused" in bench("http://127.0.0.1:1", code=1).stderr
    assert "[base-url]" in bench("ftp://x", code=2).stderr
    for flags in (["--num-prompts", 0], ["--dataset-name", "poems"], ["--request-rate", -1], ["--request-rate", "fast"]):
        bench("http://127.0.0.1:1", *flags, code=2)


def test_prompts_longer_than_the_context_are_one_line(server):
    assert "all of 2 requests failed" in bench(server.url, "--num-prompts", 2, "--input-len", 100000, code=1).stderr
