"""The prefix cache on disk, from outside: servers that are killed while they write, and what users see of it.

PAGODA_KILLS says how often a server is killed; without it, 20 times.
"""

import os
import random
import stat
import threading
import urllib.error

import pytest
from pagoda_server import PagodaServer

SEED = 20261125
KILLS = int(os.environ.get("PAGODA_KILLS", 20))
BLOCK = 16  # tokens
FLAGS = {"max_model_len": 256, "max_num_seqs": 4, "num_kv_blocks": 24, "kv_cache_dtype": "float32"}
BOUND = 1 << 20  # a third of what the prompts below take, so that files come and go all the time


def start(folder, **flags):
    return PagodaServer(**{**FLAGS, "prefix_cache_dir": folder, "prefix_cache_dir_bytes": BOUND, **flags})


def answer(server, prompt):
    body = {"prompt": prompt, "max_tokens": 3, "temperature": 0, "logprobs": 3, "ignore_eos": True}
    status, reply = server.post("/v1/completions", body)
    assert status == 200, reply
    return reply["choices"][0]["logprobs"], reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def files_of(folder):
    """Those that are whole, and those that are not."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return ([path for path in files if not path.name.endswith(".unfinished")],
            [path for path in files if path.name.endswith(".unfinished")])


class Traffic(threading.Thread):
    """Asks for prompts, some more often than others, until the server is gone; keeps the answers."""

    def __init__(self, server, prompts, seed):
        super().__init__()
        self.server, self.prompts, self.answers = server, prompts, []
        self.draws = random.Random(seed)
        self.start()

    def run(self):
        try:
            while True:
                number = int(len(self.prompts) * self.draws.random() ** 2)
                self.answers.append((number, answer(self.server, self.prompts[number])[0]))
        except (OSError, urllib.error.URLError, ValueError):
            pass  # it has been killed


def test_servers_that_are_killed_while_they_write_leave_no_wrong_bit(tmp_path):
    draws = random.Random(SEED)
    prompts = [[5 + draws.randrange(400) for _ in range(draws.randrange(100, 240))] for _ in range(24)]
    plain = PagodaServer(**{**FLAGS, "num_kv_blocks": 400})
    expected = [answer(plain, prompt)[0] for prompt in prompts]
    plain.close()
    folder = tmp_path / "cache"
    num_read = num_written = num_evicted = 0
    for kill in range(KILLS):
        server = start(folder)
        traffic = Traffic(server, prompts, SEED + kill)
        traffic.join(timeout=0.05 + 0.4 * draws.random())  # it never ends by itself
        metrics = server.metrics()
        server.process.kill()
        server.process.wait()
        traffic.join()
        assert all(got == expected[number] for number, got in traffic.answers), f"seed {SEED}, kill {kill}"
        assert metrics["prefix_cache_disk_failed_reads_total"] == 0
        num_read += metrics["prefix_cache_disk_read_blocks_total"]
        num_written += metrics["prefix_cache_disk_written_blocks_total"]
        num_evicted += metrics["prefix_cache_disk_evicted_files_total"]
        whole, unfinished = files_of(folder)
        assert len({path.stat().st_size for path in whole}) <= 1
        assert sum(path.stat().st_size for path in whole + unfinished) <= BOUND
    print(f"read {num_read:.0f}, written {num_written:.0f}, evicted {num_evicted:.0f}")
    assert num_read > KILLS and num_written > KILLS and num_evicted > KILLS


def test_two_servers_share_a_folder_and_its_files_are_their_owners(tmp_path):
    folder = tmp_path / "cache"
    prompt = [7 + i % 300 for i in range(6 * BLOCK + 1)]
    first = start(folder)
    expected, cached = answer(first, prompt)
    assert cached == 0
    first.close()  # hands on what it has
    servers = [start(folder) for _ in range(2)]
    for server in servers:
        assert answer(server, prompt) == (expected, 6 * BLOCK)
        assert server.metrics()["prefix_cache_disk_read_blocks_total"] == 6
        server.close()
    for path in [folder, *folder.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("flags", [{"kv_cache_layout": "contiguous"}, {"prefix_cache_dir": "/dev/null/cache"}])
def test_what_rules_it_out_is_one_line(tmp_path, flags):
    if "kv_cache_layout" in flags:
        flags = {"num_kv_blocks": 0, **flags}
    with pytest.raises(AssertionError, match=r"\[kv cache\] prefix-cache-dir: expected"):
        start(tmp_path / "cache", **flags)
