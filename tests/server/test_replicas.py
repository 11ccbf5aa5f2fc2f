"""Two servers behind a router that others wrote, SGLang's from PyPI: requests that begin alike find the replica that has their
beginning, and one that is killed in the middle costs no answer. docs/replicas.md says what the test does here."""

import concurrent.futures
import itertools
import json
import random
import signal
import subprocess
import sys
import time
import urllib.request

import openai
from pagoda_server import PagodaServer, free_port
from waiting import HANGS_AFTER_S, wait_for

SEED = 20
NUM_REQUESTS, NUM_BEGINNINGS, NUM_CLIENTS = 1000, 50, 8
WORDS = ["red", "green", "blue", "stone", "river", "cloud", "seven", "under", "light", "house", "paper", "train"]
KILLED_AFTER, STARTED_AFTER = 500, 508
CIRCUIT_OPEN_S = 1
BLOCKS = 720  # a replica's: its half of the beginnings and what runs, but not all of them, which a blind router would need


def replica(port=0, blocks=BLOCKS):
    return PagodaServer(port=port, threads=1, num_kv_blocks=blocks, max_num_seqs=16)


def prompts():
    chance = random.Random(SEED)

    def words(count):
        return " ".join(chance.choice(WORDS) for _ in range(count))

    beginnings = [words(60) for _ in range(NUM_BEGINNINGS)]
    return [f"{chance.choice(beginnings)} {words(6)}" for _ in range(NUM_REQUESTS)]


class Router:
    def __init__(self, urls):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sglang_router.launch_router", "--host", "127.0.0.1", "--port", str(port),
             "--worker-urls", *urls, "--policy", "cache_aware", "--health-check-endpoint", "/readyz",
             "--health-check-interval-secs", "1", "--cb-failure-threshold", "2",
             "--cb-timeout-duration-secs", str(CIRCUIT_OPEN_S), "--prometheus-port", str(free_port())],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.is_ready)

    def is_ready(self):
        assert self.process.poll() is None, "the router ended"
        try:
            return urllib.request.urlopen(self.url + "/readiness", timeout=HANGS_AFTER_S).status == 200
        except OSError:
            return False

    def wait_for_all(self):
        """Until it sends requests to each replica: all are healthy, and the circuit of none is open from an earlier failure."""
        wait_for(lambda: all(worker["is_healthy"] for worker in self.workers()))
        time.sleep(2 * CIRCUIT_OPEN_S)

    def workers(self):
        with urllib.request.urlopen(self.url + "/workers", timeout=HANGS_AFTER_S) as answer:
            return json.load(answer)["workers"]

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=HANGS_AFTER_S)


class Client:
    """Asks for one answer after another. Its retries are the router's, and none of its own."""

    def __init__(self, url):
        self.api = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0, timeout=HANGS_AFTER_S)

    def ask(self, prompt, **seed):
        """The seed, the token ids, and how many tokens of the prompt were cached."""
        answer = self.api.completions.with_raw_response.create(
            model="tiny-llama", prompt=prompt, max_tokens=8, temperature=1.0,
            extra_body={"ignore_eos": True, "return_token_ids": True}, **seed)
        parsed = answer.parse()
        return (int(answer.headers["x-seed"]), parsed.choices[0].token_ids, parsed.usage.prompt_tokens_details.cached_tokens)


def ask_all(ask, asked):
    with concurrent.futures.ThreadPoolExecutor(NUM_CLIENTS) as pool:
        return list(pool.map(ask, asked))


def num_cached(answers):
    return sum(cached for _, _, cached in answers)


def test_a_killed_replica_costs_no_answer_and_answers_repeat_anywhere():
    asked = prompts()
    alone = replica(blocks=2 * BLOCKS)
    cached_alone = num_cached(ask_all(Client(alone.url).ask, asked))
    alone.close()
    replicas = [replica(), replica()]
    router = Router([each.url for each in replicas])
    client = Client(router.url)
    num_answers = itertools.count(1)

    def ask_and_kill_one(prompt):
        answer = client.ask(prompt)
        if next(num_answers) == KILLED_AFTER:
            replicas[1].process.kill()
        return answer

    try:
        answers = ask_all(ask_and_kill_one, asked[:STARTED_AFTER])
        replicas[1].process.wait()
        replicas[1] = replica(port=replicas[1].port)
        router.wait_for_all()
        answers += ask_all(client.ask, asked[STARTED_AFTER:])
        cached = num_cached(answers)
        print(f"seed {SEED}: {cached} cached tokens of two replicas, {cached_alone} of one with twice the memory")
        assert cached >= 0.85 * cached_alone
        for prompt, (seed, token_ids, _) in list(zip(prompts(), answers))[::5]:
            assert client.ask(prompt, seed=seed)[:2] == (seed, token_ids)
    finally:
        router.close()
        for each in replicas:
            each.close()
