"""What monitoring reads: each figure that the dashboard draws is there, by its name and labels."""

import json
import os
import pathlib
import re
import urllib.request

from pagoda_server import PagodaServer
from waiting import HANGS_AFTER_S

DASHBOARD = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"]) / "packaging/grafana.json"


def labels_by_metric(server):
    with urllib.request.urlopen(server.url + "/metrics", timeout=HANGS_AFTER_S) as answer:
        text = answer.read().decode()
    found = {}
    for name, labels in re.findall(r"^([\w:]+)\{([^}]*)\}", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    return found


def test_the_dashboard_draws_what_is_there():
    dashboard = json.loads(DASHBOARD.read_text())
    server = PagodaServer()
    status, _ = server.post("/v1/completions", {"prompt": "a", "max_tokens": 2})
    assert status == 200
    metrics = labels_by_metric(server)
    server.close()
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
