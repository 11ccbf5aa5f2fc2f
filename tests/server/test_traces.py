"""Traces: a span a request, as a collector of OpenTelemetry's takes it. The collector here is a few lines, and checks each body by
the protocol's own schema."""

import base64
import http.server
import json
import threading
import time
import urllib.request

import httpx
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from pagoda_server import PagodaServer, free_port
from waiting import HANGS_AFTER_S, wait_for

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def with_bytes(value):
    """Ids are hexadecimal in OTLP's JSON, where Protobuf's has base64."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64encode(bytes.fromhex(item)).decode() if key in ("traceId", "spanId", "parentSpanId") else with_bytes(item)
            for key, item in value.items()}


class Collector:
    def __init__(self, status=200, port=0):
        self.status, self.delay_s, self.paths, self.spans, self.services = status, 0, [], [], set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                status = collector.status  # which the test may change once it sees the spans
                collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
                time.sleep(collector.delay_s)
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path, body):
        self.paths.append(path)
        if self.status != 200:
            return
        request = json_format.ParseDict(with_bytes(json.loads(body)), ExportTraceServiceRequest())
        for resource in request.resource_spans:
            self.services.add(attributes(resource.resource)["service.name"])
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def value_of(value):
    kind = value.WhichOneof("value")
    return [value_of(item) for item in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def attributes(of):
    return {item.key: value_of(item.value) for item in of.attributes}


@pytest.fixture
def collector():
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def server(collector):
    fake = PagodaServer(otlp_traces_endpoint=collector.url)
    yield fake
    assert fake.is_running()
    fake.close()


def ask(server, path="/v1/completions", headers=None, **body):
    body = {"prompt": [5, 6, 7], "max_tokens": 8, "ignore_eos": True, **body}
    return httpx.post(server.url + path, json=body, headers=headers or {}, timeout=HANGS_AFTER_S)


def test_a_request_is_a_span_with_its_id_and_a_span_a_sample(server, collector):
    before = time.time_ns()
    answer = ask(server, n=2, headers={"traceparent": f"00-{TRACE}-{PARENT}-01", "x-request-id": "mine"})
    assert answer.headers["x-request-id"] == "mine"
    wait_for(lambda: len(collector.spans) == 3)
    after = time.time_ns()
    assert collector.paths == ["/v1/traces"] and collector.services == {"pagoda"}
    (span,) = collector.named("POST /v1/completions")
    assert (span.trace_id.hex(), span.parent_span_id.hex(), span.kind) == (TRACE, PARENT, Span.SPAN_KIND_SERVER)
    assert attributes(span) == {
        "http.request.method": "POST", "http.route": "/v1/completions", "http.response.status_code": 200,
        "http.response.body.size": attributes(span)["http.response.body.size"], "http.response.header.x-request-id": ["mine"]}
    assert attributes(span)["http.response.body.size"] > len(answer.content)
    assert before < span.start_time_unix_nano < span.end_time_unix_nano < after
    assert span.status.code == Status.STATUS_CODE_UNSET
    samples = collector.named("generate")
    assert len({sample.span_id for sample in samples} | {span.span_id}) == 3
    for sample in samples:
        assert (sample.trace_id, sample.parent_span_id) == (span.trace_id, span.span_id)
        told = attributes(sample)
        assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (3, 8)
        assert told["gen_ai.response.finish_reasons"] == ["length"]
        assert [event.name for event in sample.events] == ["started", "first token"]
        times = [span.start_time_unix_nano, sample.start_time_unix_nano, *(event.time_unix_nano for event in sample.events),
                 sample.end_time_unix_nano, span.end_time_unix_nano]
        # Each is read from the clock anew: a span's own end may lie some microseconds before its part's.
        assert all(earlier <= later + 1_000_000 for earlier, later in zip(times, times[1:]))
        first = told["gen_ai.latency.time_in_queue"] + told["gen_ai.latency.time_in_model_prefill"]
        assert told["gen_ai.latency.time_to_first_token"] == pytest.approx(first)
        assert first + told["gen_ai.latency.time_in_model_decode"] <= told["gen_ai.latency.e2e"]


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 8}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 8, "stream": True}),
    ("/v1/responses", {"input": "a", "max_output_tokens": 16}),
    ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 8}),
    ("/api/generate", {"prompt": "a", "model": "tiny-llama", "options": {"num_predict": 4}}),
    ("/v1/embeddings", {"input": "a", "model": "tiny-llama"}),
    ("/api/embed", {"input": "a", "model": "tiny-llama"}),
])
def test_every_endpoint_is_traced(server, collector, path, body):
    answer = httpx.post(server.url + path, json=body, timeout=HANGS_AFTER_S)
    assert answer.status_code == 200, answer.text
    wait_for(lambda: len(collector.spans) == 2)
    span, sample = collector.named("POST " + path)[0], collector.named("generate")[0]
    assert not span.parent_span_id and sample.parent_span_id == span.span_id
    assert attributes(span)["http.response.header.x-request-id"] == [answer.headers["x-request-id"]]
    assert attributes(sample)["gen_ai.usage.input_tokens"] > 0


def test_who_keeps_no_trace_gets_none_and_a_probe_is_none(server, collector):
    ask(server, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    urllib.request.urlopen(server.url + "/health").close()
    ask(server, headers={"traceparent": "00-no-trace-at-all"})
    wait_for(lambda: collector.spans)
    time.sleep(1.2)  # it sends once a second
    assert len(collector.spans) == 2  # of the last one alone
    assert collector.spans[0].trace_id.hex() != TRACE


def test_refusals_and_clients_that_leave_are_told(server, collector):
    assert ask(server, temperature=-1).status_code == 400
    with httpx.stream("POST", server.url + "/v1/completions", timeout=HANGS_AFTER_S, json={
            "prompt": [5, 6], "max_tokens": 400, "ignore_eos": True, "stream": True}) as stream:
        next(stream.iter_lines())
    wait_for(lambda: len(collector.spans) == 3)
    refused, left = sorted(collector.named("POST /v1/completions"), key=lambda span: span.start_time_unix_nano)
    assert attributes(refused)["http.response.status_code"] == 400 and refused.status.code == Status.STATUS_CODE_UNSET
    assert (left.status.code, left.status.message) == (Status.STATUS_CODE_ERROR, "the client went away")
    assert attributes(collector.named("generate")[0])["gen_ai.response.finish_reasons"] == ["abort"]


def test_the_end_sends_what_waits(collector):
    server = PagodaServer(otlp_traces_endpoint=collector.url + "/other/path")
    ask(server)
    server.close()
    assert len(collector.spans) == 2 and collector.paths == ["/other/path"]


def test_a_collector_that_is_away_or_refuses_is_told_once_and_delays_nothing():
    port = free_port()
    server = PagodaServer(otlp_traces_endpoint=f"http://127.0.0.1:{port}/v1/traces")
    for _ in range(2):
        assert ask(server).status_code == 200
        time.sleep(1.2)
    assert server.log.read_text().count("expected a collector that takes spans, got: ") == 1
    refusing = Collector(status=503, port=port)
    ask(server)
    wait_for(lambda: refusing.paths)
    refusing.status = 200
    ask(server)
    wait_for(lambda: refusing.spans)
    refusing.status = 404
    ask(server)
    wait_for(lambda: "got: HTTP 404" in server.log.read_text())
    refusing.status, refusing.delay_s = 200, 3
    ask(server)  # on its way to a collector that takes its time
    time.sleep(1.2)
    started = time.monotonic()
    ask(server)
    assert time.monotonic() - started < 2
    server.close()
    refusing.close()


def test_a_client_with_a_name_is_told(collector, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("alice secret-of-alice\n")
    server = PagodaServer(otlp_traces_endpoint=collector.url, api_key_file=keys)
    ask(server, headers={"authorization": "Bearer secret-of-alice"})
    assert ask(server).status_code == 401
    wait_for(lambda: len(collector.named("POST /v1/completions")) == 2)
    assert [attributes(span).get("enduser.id") for span in collector.named("POST /v1/completions")] == ["alice", None]
    server.close()


def test_a_url_that_is_none():
    with pytest.raises(AssertionError, match="collector:4317: expected a URL such as http://localhost:4318/v1/traces"):
        PagodaServer(otlp_traces_endpoint="collector:4317")
