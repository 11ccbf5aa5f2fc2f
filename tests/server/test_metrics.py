"""What monitoring reads: both text formats are as their standards say, and each figure that the dashboard draws is there."""

import gzip
import json
import math
import os
import pathlib
import re
import time
import urllib.request

import pytest
import yaml
from pagoda_server import PagodaServer
from waiting import HANGS_AFTER_S

PACKAGING = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "packaging"


# The header Accept that Prometheus 2.42 sends.
ACCEPT = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
          "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}


@pytest.fixture(scope="module")
def server():
    made = PagodaServer()
    status, _ = made.post("/v1/completions", {"prompt": "a", "max_tokens": 2})
    assert status == 200
    yield made
    made.close()


def get_metrics(server, **headers):
    """The headers of the answer, and its text."""
    request = urllib.request.Request(server.url + "/metrics", headers={name.replace("_", "-"): text for name, text in headers.items()})
    with urllib.request.urlopen(request, timeout=HANGS_AFTER_S) as answer:
        body = answer.read()
        if answer.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        return answer.headers, body.decode()


def read_families(text, is_open):
    """Types and samples by family; fails where the text is not in the format. OpenMetrics names counters without their ending."""
    types, helped, samples, current = {}, set(), {}, None
    lines = text.splitlines(keepends=True)
    assert all(line.endswith("\n") and line != "\n" for line in lines)
    if is_open:
        assert lines.pop() == "# EOF\n"
    for line in lines:
        about = re.fullmatch(r"# (TYPE|HELP) ([a-zA-Z_:][\w:]*) (.*)\n", line)
        if about:
            kind, current, words = about.groups()
            if kind == "TYPE":
                assert current not in types and words in SUFFIXES
                types[current] = words
            else:
                assert current not in helped and not samples.get(current)
                helped.add(current)
            continue
        name, labels, value = SAMPLE.fullmatch(line[:-1]).groups()
        suffixes = SUFFIXES[types[current]] if is_open or types[current] == "histogram" else [""]
        assert name in [current + suffix for suffix in suffixes]
        key = (name, *re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or ""))
        family = samples.setdefault(current, {})
        assert key not in family, "a sample is told twice"
        family[key] = float(value)
        if types[current] != "gauge":
            assert float(value) >= 0
    assert set(samples) == set(types) == helped
    return types, samples


def check_histogram(family):
    series = {}
    for (name, *labels), value in family.items():
        bound = dict(labels).pop("le", None)
        of = tuple(label for label in labels if label[0] != "le")
        series.setdefault(of, {"buckets": []})
        if bound is None:
            series[of][name.rsplit("_", 1)[1]] = value
        else:
            series[of]["buckets"].append((float(bound), value))
    for each in series.values():
        bounds, counts = zip(*each["buckets"])
        assert list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf
        assert list(counts) == sorted(counts) and counts[-1] == each["count"]
        assert each["sum"] >= 0


def test_both_formats_are_as_their_standards_say(server):
    get_metrics(server)  # the answers that count themselves
    told = {}
    for accept, is_open in (("*/*", False), (ACCEPT, True), ("application/openmetrics-text;q=0, text/plain", False)):
        headers, text = get_metrics(server, Accept=accept)
        version = "application/openmetrics-text; version=1.0.0" if is_open else "text/plain; version=0.0.4"
        assert headers["Content-Type"] == version + "; charset=utf-8" and "Accept" in headers["Vary"]
        types, samples = read_families(text, is_open)
        for name, kind in types.items():
            if kind == "histogram":
                check_histogram(samples[name])
        bounds = re.findall(r'le="([^"]*)"', text)
        assert not is_open or all("." in bound or "e" in bound or bound == "+Inf" for bound in bounds)
        told[is_open] = {key[0] for family in samples.values() for key in family}
    assert told[True] == told[False]


def test_it_is_compressed_for_who_asks(server):
    plain, text = get_metrics(server, Accept_Encoding="identity")
    assert plain["Content-Encoding"] is None
    headers, same = get_metrics(server, Accept_Encoding="deflate, gzip;q=0.5", Accept=ACCEPT)
    assert headers["Content-Encoding"] == "gzip" and int(headers["Content-Length"]) < len(text) / 5
    assert same.endswith("# EOF\n")
    refused, _ = get_metrics(server, Accept_Encoding="gzip;q=0")
    assert refused["Content-Encoding"] is None


def test_requests_are_timed_and_the_process_is_told(server):
    _, text = get_metrics(server)
    _, samples = read_families(text, is_open=False)
    timed = samples["http_request_duration_seconds"]
    asked = {("handler", "/v1/completions"), ("status", "2xx")}
    count, total = (next(value for (name, *labels), value in timed.items() if name.endswith(end) and asked <= set(labels))
                    for end in ("_count", "_sum"))
    assert count == 1 and 0 < total < HANGS_AFTER_S
    process = {key[0].removeprefix("process_"): value for name, family in samples.items() if name.startswith("process_")
               for key, value in family.items()}
    assert 0 < process["cpu_seconds_total"] <= server.cpu_s() + 1
    assert abs(process["start_time_seconds"] - time.time()) < HANGS_AFTER_S
    assert process["virtual_memory_bytes"] > process["resident_memory_bytes"] > 1 << 20
    assert 3 < process["open_fds"] < process["max_fds"]


def labels_by_metric(server):
    _, text = get_metrics(server)
    found = {}
    for name, labels in re.findall(r"^([\w:]+)\{([^}]*)\}", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_the_dashboard_draws_what_is_there(server):
    dashboard = json.loads((PACKAGING / "grafana.json").read_text())
    metrics = labels_by_metric(server)
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 20
    for expression in expressions:
        names = re.findall(r"pagoda:\w+|http_requests_total", expression)
        assert names, expression
        asked = re.findall(r"(\w+)=", expression)
        for group in re.findall(r"by \(([^)]*)\)", expression):
            asked += group.split(", ")
        for name in names:
            assert name in metrics, expression
            assert set(asked) <= metrics[name], expression
        # A rate is of what only grows.
        assert ("rate(" in expression) == any(name.endswith(("_total", "_bucket")) for name in names), expression
    model = next(each for each in dashboard["templating"]["list"] if each["name"] == "model")
    name, label = re.fullmatch(r"label_values\(([\w:]+), (\w+)\)", model["query"]).groups()
    assert label in metrics[name]
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    cells = [(place["x"] + dx, place["y"] + dy) for place in places for dx in range(place["w"])
             for dy in range(place["h"])]
    assert len(cells) == len(set(cells)), "panels lie over one another"


# Words of the language that alerts are written in.
WORDS = {"and", "or", "unless", "on", "by", "sum", "rate", "histogram_quantile"}


def test_alerts_ask_for_what_is_there(server):
    metrics = labels_by_metric(server)
    _, text = get_metrics(server)
    metrics |= {name: set() for name in re.findall(r"^(process_\w+) ", text, re.MULTILINE)}
    group, = yaml.safe_load((PACKAGING / "prometheus/alerts.yaml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(names) == len(set(names)) and {"PagodaEngineDead", "PagodaQueueFull", "PagodaNoProgress", "PagodaCacheThrashing"} <= set(names)
    for rule in group["rules"]:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"} and set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("warning", "critical") and re.fullmatch(r"\d+m", rule["for"])
        grouped = re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"])
        asked = re.findall(r"(\w+)=", rule["expr"]) + [label for each in grouped for label in each.split(", ")]
        bare = re.sub(r'"[^"]*"|(?:by|on) \([^)]*\)|\[\w+\]|\{[^}]*\}', "", rule["expr"])
        used = set(re.findall(r"[a-z][\w:]*", bare)) - WORDS
        assert used and used <= set(metrics), rule["expr"]
        # Prometheus itself adds these two.
        assert set(asked) - {"instance", "job"} <= set.union(*(metrics[name] for name in used)), rule["expr"]
        rated = re.findall(r"rate\(([\w:]+)", rule["expr"])
        assert all(name.endswith(("_total", "_bucket")) for name in rated)
        assert {name for name in used if name.endswith(("_total", "_bucket"))} == set(rated)
