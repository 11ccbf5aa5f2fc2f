"""The container files, the compose file, Kubernetes' manifests, Homebrew's formula and the release workflow: what they ask of the
program is there, and what they say of one another is so. Their commands run here, as far as they need no container."""

import hashlib
import http.client
import http.server
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
import urllib.parse

import pytest
import yaml
from pagoda_command import TINY, pagoda

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "server"))
from certificate import Certificate  # noqa: E402
from fake_server import FakeServer  # noqa: E402
from pagoda_server import PagodaServer, free_port  # noqa: E402
from waiting import HANGS_AFTER_S, wait_for  # noqa: E402

SOURCE = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"])
PACKAGING = SOURCE / "packaging"
KEY = "a-key-of-this-test"


class Image:
    """The last stage of a container file."""

    def __init__(self, name):
        self.text = (PACKAGING / name).read_text().replace("\\\n", "")
        self.last_stage = self.text[self.text.rindex("\nFROM ") :]
        self.entrypoint = json.loads(self.instruction("ENTRYPOINT"))
        self.health_check = json.loads(self.instruction("HEALTHCHECK").split("CMD", 1)[1])
        self.port = int(self.instruction("EXPOSE"))
        self.user, self.group = map(int, self.instruction("USER").split(":"))

    def instruction(self, name):
        found, = re.findall(rf"^{name} (.*)$", self.last_stage, re.MULTILINE)
        return found

    def is_healthy(self, port):
        """Whether the container's check, run here, says so."""
        command = [sys.executable if each.endswith("/python") else each for each in self.health_check]
        command = [each.replace(f":{self.port}/", f":{port}/") for each in command]
        done = subprocess.run(command, env={**os.environ, "PAGODA_PORT": str(port)}, capture_output=True, timeout=HANGS_AFTER_S,
                              check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.returncode == 0


PROGRAM, ROUTER = Image("Containerfile"), Image("router.Containerfile")
COMPOSE = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]
RELEASE = yaml.safe_load((SOURCE / ".github/workflows/release.yml").read_text())["jobs"]
FORMULA = (PACKAGING / "homebrew/pagoda.rb.in").read_text()
CLUSTER = {(each["kind"], each["metadata"]["name"]): each["spec"]
           for name in yaml.safe_load((PACKAGING / "kubernetes/kustomization.yaml").read_text())["resources"]
           for each in yaml.safe_load_all((PACKAGING / "kubernetes" / name).read_text())}
REPLICAS, ROUTERS = CLUSTER["StatefulSet", "pagoda"], CLUSTER["Deployment", "pagoda-router"]


def pod(workload):
    """The description of its pods, and that of the one container in each."""
    spec = workload["template"]["spec"]
    container, = spec["containers"]
    return spec, container


def flags_of(arguments):
    """The flags in a command, with all values of each."""
    flags = {}
    for name, value in zip(arguments, arguments[1:]):
        if name.startswith("--"):
            flags.setdefault(name, []).append(value)
    return flags


# Each deployment has the arguments of `pagoda serve` by which a replica starts, and those of the router that asks it.
DEPLOYMENTS = {
    "compose": (COMPOSE["replica-1"]["command"], COMPOSE["router"]["command"]),
    "kubernetes": (pod(REPLICAS)[1]["args"], pod(ROUTERS)[1]["args"]),
}


def steps_of(job):
    return [step["run"] for step in RELEASE[job]["steps"] if "run" in step]


def worker_urls(router_arguments):
    return [urllib.parse.urlsplit(each) for each in router_arguments[router_arguments.index("--worker-urls") + 1 :]]


def status(port, path, host="127.0.0.1", key=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_AFTER_S)
    try:
        connection.request("GET", path, headers={"Host": host, **({"Authorization": f"Bearer {key}"} if key else {})})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture(scope="module", params=DEPLOYMENTS)
def replica(request, tmp_path_factory):
    """A server with the flags of a deployment's replicas, and the addresses by which its router asks them."""
    arguments, router_arguments = DEPLOYMENTS[request.param]
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"tester {KEY}\n")
    flags = {name.removeprefix("--").replace("-", "_"): values for name, values in flags_of(arguments).items()}
    server = PagodaServer(**{**flags, "api_key_file": keys, "served_model_name": "smollm2"})
    yield server, worker_urls(router_arguments)
    server.close()


def test_the_program_takes_every_flag():
    lines = [line for job in RELEASE for script in steps_of(job) for line in re.findall(r"pagoda serve (.*)", script)]
    service = re.search(r"run \[(.*)\]", FORMULA)[1]
    commands = [PROGRAM.entrypoint + json.loads(PROGRAM.instruction("CMD")), re.findall(r'"([^"]*)"', service),
                *(replica for replica, _ in DEPLOYMENTS.values()), *map(shlex.split, lines)]
    used = {word for command in commands for word in command if word.startswith("--") and word != "--"}
    assert used <= set(re.findall(r"--[\w-]+", pagoda("serve", "--help").stdout))
    assert "--config" in used and "--api-key-file" in used and len(lines) == 1
    variables = set(re.findall(r"PAGODA_\w+(?==)", PROGRAM.instruction("ENV")))
    assert {"--" + each.removeprefix("PAGODA_").lower().replace("_", "-") for each in variables - {"PAGODA_MODEL_DIR"}} == {
        "--host", "--port"}


def test_models_come_by_a_command_that_is_there():
    pull, = pod(REPLICAS)[0]["initContainers"]
    docker, = (shlex.split(line) for script in steps_of("containers") for line in script.splitlines() if " pull " in line)
    assert COMPOSE["model"]["entrypoint"] == pull["command"][:2] == docker[-3:-1] == ["pagoda", "pull"]
    assert "NAME" in pagoda("pull", "--help").stdout


def test_a_container_is_healthy_once_its_model_answers(replica):
    class Loading(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(503)

        def log_message(self, *_):
            pass

    server, _ = replica
    assert status(server.port, "/v1/models") == 401
    assert PROGRAM.is_healthy(server.port)
    assert not PROGRAM.is_healthy(free_port())
    with http.server.HTTPServer(("127.0.0.1", 0), Loading) as loading:
        threading.Thread(target=loading.serve_forever, daemon=True).start()
        assert not PROGRAM.is_healthy(loading.server_port)
        loading.shutdown()


def test_a_container_with_a_certificate_is_healthy_too(tmp_path):
    server = FakeServer(Certificate(tmp_path), api_key=KEY)
    try:
        assert PROGRAM.is_healthy(server.port)
    finally:
        server.close()
    assert not PROGRAM.is_healthy(server.port)


def test_replicas_take_requests_by_the_names_that_the_router_asks(replica):
    server, urls = replica
    assert len(urls) == 2
    for url in urls:
        assert url.port == PROGRAM.port
        assert status(server.port, "/v1/models", host=url.netloc, key=KEY) == 200
    assert status(server.port, "/v1/models", host="elsewhere.example", key=KEY) == 403


def test_probes_ask_what_the_server_answers(replica):
    server, _ = replica
    _, container = pod(REPLICAS)
    probes = {name: container[name + "Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/health", "liveness": "/livez", "readiness": "/readyz"}
    health_path, = re.findall(r"GET (\S+) ", PROGRAM.health_check[-1])
    for path in {health_path, ROUTER.entrypoint[ROUTER.entrypoint.index("--health-check-endpoint") + 1], *probes.values()}:
        assert status(server.port, path) == 200


def test_the_router_passes_answers_and_keys_on(replica):
    server, _ = replica
    port = free_port()
    command = [sys.executable, *ROUTER.entrypoint[1:], "--host", "127.0.0.1", "--port", str(port), "--prometheus-port",
               str(free_port()), "--worker-urls", server.url]
    router = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_ready():
        assert router.poll() is None, "the router ended"
        try:
            return status(port, readiness) == 200
        except OSError:
            return False

    try:
        container = pod(ROUTERS)[1]
        readiness = container["readinessProbe"]["httpGet"]["path"]
        wait_for(is_ready)
        assert ROUTER.is_healthy(port)
        assert status(port, container["livenessProbe"]["httpGet"]["path"]) == 200
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGS_AFTER_S)
        for key, expected in ((KEY, 200), ("another", 401)):
            connection.request("POST", "/v1/completions", json.dumps({"model": "smollm2", "prompt": "river", "max_tokens": 2}),
                               {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, bool(answer.read())) == (expected, True)
        connection.close()
    finally:
        router.terminate()
        router.wait(timeout=HANGS_AFTER_S)
    assert not ROUTER.is_healthy(port)


def test_the_workflow_asks_for_an_answer():
    server = PagodaServer(served_model_name="smollm2")
    try:
        asked = subprocess.run([PACKAGING / "ask.sh", server.url], capture_output=True, text=True, timeout=HANGS_AFTER_S, check=True)
    finally:
        server.close()
    assert json.loads(asked.stdout)["usage"]["completion_tokens"] > 0
    for job in ("debian_package", "tarball", "containers", "formula"):
        assert steps_of(job)[-1].count("packaging/ask.sh") == 1, job
    assert set(RELEASE["publish"]["needs"]) == set(RELEASE) - {"publish"}


def test_ports_and_names_agree():
    entrypoint = flags_of(ROUTER.entrypoint)
    assert entrypoint["--port"] == [str(ROUTER.port)]
    assert f"PAGODA_PORT={PROGRAM.port} " in PROGRAM.instruction("ENV") + " "
    assert COMPOSE["router"]["ports"] == [f"127.0.0.1:8000:{ROUTER.port}"]
    for workload, service, image in ((REPLICAS, "pagoda", PROGRAM), (ROUTERS, "pagoda-router", ROUTER)):
        _, container = pod(workload)
        assert [each["containerPort"] for each in container["ports"]] == [image.port]
        assert {each["port"] for each in CLUSTER["Service", service]["ports"]} == {image.port}
        assert CLUSTER["Service", service]["selector"] == workload["selector"]["matchLabels"] == workload["template"]["metadata"]["labels"]
    assert [url.hostname for url in worker_urls(COMPOSE["router"]["command"])] == [name for name in COMPOSE if "replica" in name]
    named = [f"pagoda-{index}.{REPLICAS['serviceName']}" for index in range(REPLICAS["replicas"])]
    assert [url.hostname for url in worker_urls(pod(ROUTERS)[1]["args"])] == named


def test_who_may_ask_a_replica_can_and_one_of_them_stays():
    name = {"app.kubernetes.io/name": "pagoda"}
    budget = CLUSTER["PodDisruptionBudget", "pagoda"]
    assert budget["selector"]["matchLabels"] == name == REPLICAS["selector"]["matchLabels"]
    assert 0 < budget["maxUnavailable"] < REPLICAS["replicas"]
    for workload, policy in ((REPLICAS, "pagoda"), (ROUTERS, "pagoda-router")):
        allowed = CLUSTER["NetworkPolicy", policy]
        assert allowed["podSelector"]["matchLabels"] == workload["template"]["metadata"]["labels"]
        assert allowed["policyTypes"] == ["Ingress"]
        ports = {each["name"] for each in pod(workload)[1]["ports"]}
        assert all({each["port"] for each in rule["ports"]} == ports for rule in allowed["ingress"])
    (rule, ), (router, ) = (CLUSTER["NetworkPolicy", policy]["ingress"] for policy in ("pagoda", "pagoda-router"))
    assert ROUTERS["template"]["metadata"]["labels"] in [each.get("podSelector", {}).get("matchLabels") for each in rule["from"]]
    assert "from" not in router


def test_prometheus_finds_the_replicas(replica):
    folder = PACKAGING / "kubernetes/monitoring"
    resources = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    assert [(folder / each).resolve().exists() for each in resources] == [True, True]
    spec = yaml.safe_load((folder / "service_monitor.yaml").read_text())["spec"]
    services = [each for each in yaml.safe_load_all((PACKAGING / "kubernetes/replicas.yaml").read_text()) if each["kind"] == "Service"]
    found, = (each for each in services if spec["selector"]["matchLabels"].items() <= each["metadata"]["labels"].items())
    endpoint, = spec["endpoints"]
    assert endpoint["port"] in {each["name"] for each in found["spec"]["ports"]}
    server, _ = replica
    assert status(server.port, endpoint["path"], host="10.1.2.3:8000") == 200


def test_what_ends_has_time_to_finish():
    # CLI11 2.2 writes FLOAT=30, 2.4 and later FLOAT [30].
    default, = re.findall(r"--shutdown-timeout FLOAT(?:=| \[)(\d+)", pagoda("serve", "--help").stdout)
    router_s, = map(int, flags_of(ROUTER.entrypoint)["--shutdown-grace-period-secs"])
    service = (PACKAGING / "pagoda.service.in").read_text()
    assert int(re.search(r"^TimeoutStopSec=(\d+)$", service, re.MULTILINE)[1]) > int(default)
    compose_s, cluster_s = (int(flags_of(arguments)["--shutdown-timeout"][0]) for arguments, _ in DEPLOYMENTS.values())
    assert compose_s <= router_s >= cluster_s
    for name, needed in (("replica-1", compose_s), ("replica-2", compose_s), ("router", router_s)):
        assert int(COMPOSE[name]["stop_grace_period"].removesuffix("s")) > needed
    for workload, needed in ((REPLICAS, cluster_s), (ROUTERS, router_s)):
        assert pod(workload)[0]["terminationGracePeriodSeconds"] > needed


def test_nothing_runs_as_root_or_may_write_where_it_need_not():
    assert f"useradd --uid {PROGRAM.user} " in PROGRAM.last_stage
    for workload, image in ((REPLICAS, PROGRAM), (ROUTERS, ROUTER)):
        spec, _ = pod(workload)
        whole = spec["securityContext"]
        assert whole["runAsNonRoot"] and (whole["runAsUser"], whole["runAsGroup"]) == (image.user, image.group) > (0, 0)
        assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"] + spec.get("initContainers", []):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    for service in COMPOSE.values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
    # Kubernetes' variables for a service `pagoda` would be taken for flags, such as PAGODA_PORT=tcp://10.0.0.1:8000.
    assert pod(REPLICAS)[0]["enableServiceLinks"] is False
    assert "--port: expected" in pagoda("serve", TINY, code=2, PAGODA_PORT="tcp://10.0.0.1:8000").stderr


def test_the_router_has_the_version_that_the_tests_have(tmp_path):
    requirements = tmp_path / "requirements-test.txt"
    requirements.write_text((SOURCE / "tools/requirements-test.txt").read_text())
    grep = re.search(r"grep -o '[^']*'", ROUTER.last_stage)[0]
    versions = subprocess.run(["sh", "-c", f"{grep} {requirements}"], capture_output=True, text=True, check=True).stdout.split()
    version, = (each.partition("==")[2] for each in versions if each.startswith("sglang-router=="))
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", each) for each in versions)
    assert f"`sglang-router` {version}" in (SOURCE / "docs/replicas.md").read_text()


def test_the_formula_installs_what_setup_does():
    setup = (SOURCE / "tools/setup.sh").read_text()
    installed = set(re.search(r"brew_build=\(([^)]*)\)", setup)[1].split()) | set(re.findall(r"brew_install (rust)", setup))
    for_tests = {"ccache", "rapidcheck", "google-benchmark"}
    assert set(re.findall(r'depends_on "([^"]+)"', FORMULA)) == installed - for_tests
    for path in ["tools/requirements.txt", *re.findall(r'install "([^"]+)"$', FORMULA, re.MULTILINE)]:
        assert f'"{path}"' in FORMULA and (SOURCE / path).exists()


def test_the_workflow_fills_the_formula_in(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@a.example", *arguments], cwd=tmp_path, check=True)

    def run(script, **environment):
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, check=True, env={**os.environ, **environment})

    formula = tmp_path / "packaging/homebrew/pagoda.rb.in"
    formula.parent.mkdir(parents=True)
    formula.write_text(FORMULA)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "all")
    make, = steps_of("sources")
    run(make, GITHUB_REF_NAME="v9.8.7", GITHUB_SERVER_URL="https://git.example", GITHUB_REPOSITORY="a/pagoda")
    tarball = tmp_path / "pagoda-9.8.7.tar.gz"
    made = (tmp_path / "pagoda.rb").read_text()
    assert '  url "https://git.example/a/pagoda/releases/download/v9.8.7/pagoda-9.8.7.tar.gz"\n' in made
    assert f'  sha256 "{hashlib.sha256(tarball.read_bytes()).hexdigest()}"\n' in made
    assert '  homepage "https://git.example/a/pagoda"\n' in made and not re.search(r"@[A-Z0-9]+@", made)

    # This Homebrew does nothing but say where its tap is.
    brew = tmp_path / "bin/brew"
    brew.parent.mkdir()
    brew.write_text(f'#!/bin/sh\n[ "$1" != --repository ] || echo "{tmp_path}/tap"\n')
    brew.chmod(0o755)
    (tmp_path / "tap/Formula").mkdir(parents=True)
    run(steps_of("formula")[0], PATH=f"{brew.parent}:{os.environ['PATH']}")
    tapped = (tmp_path / "tap/Formula/pagoda.rb").read_text()
    assert f'  url "file://{tarball}"\n' in tapped and len(tapped.splitlines()) == len(made.splitlines())


def test_a_build_in_a_container_knows_its_commit(tmp_path):
    """.dockerignore leaves git's objects out. What is left tells the commit."""
    assert ".git/objects/*" in (SOURCE / ".dockerignore").read_text().splitlines()
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    commit = "0123456789abcdef0123456789abcdef01234567"
    (tmp_path / ".git/HEAD").write_text(commit + "\n")
    header = tmp_path / "commit.h"
    subprocess.run(["cmake", f"-DSOURCE={tmp_path}", f"-DHEADER={header}", "-P", SOURCE / "cmake/write_commit.cmake"], check=True)
    assert header.read_text() == f'#define PAGODA_COMMIT "{commit[:12]}"\n'
