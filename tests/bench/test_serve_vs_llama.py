"""bench/serve_vs_llama.py without llama.cpp: Pagoda is its own peer."""

import argparse
import os
import pathlib

import pytest
import serve_vs_llama

SOURCE = pathlib.Path(os.environ["PAGODA_SOURCE_DIR"])
PAGODA = os.environ["PAGODA_BINARY"]


@pytest.fixture
def flags():
    return argparse.Namespace(pagoda=PAGODA, model=SOURCE / "tests/golden/data/tiny-llama", threads=1, num_prompts=6,
                              request_rate=100.0, max_concurrency=2, num_warmups=1, input_len=16, output_len=4)


def test_a_turn_is_a_servers_figures(flags, tmp_path):
    figures = serve_vs_llama.turn(flags, serve_vs_llama.pagoda_command, PAGODA, tmp_path / "log")
    assert (figures["completed"], figures["total_input_tokens"], figures["total_output_tokens"]) == (6, 96, 24)
    assert figures["max_concurrency"] == 2 and "listening on" in (tmp_path / "log").read_text()


def test_a_server_that_does_not_come_up_is_named(flags, tmp_path):
    flags.model = tmp_path / "none"
    with pytest.raises(OSError, match="did not come up"):
        serve_vs_llama.turn(flags, serve_vs_llama.pagoda_command, PAGODA, tmp_path / "log")


def test_the_peer_has_room_for_every_request(flags):
    words = [str(word) for word in serve_vs_llama.llama_command("llama-server", flags, 1)]
    slots, context = (int(words[words.index(flag) + 1]) for flag in ("-np", "-c"))
    assert slots == 2 and context / slots >= 16 + 4


def test_ratios_are_in_pagodas_favour():
    own = [dict.fromkeys((name for name, _, _ in serve_vs_llama.FIGURES), value) for value in (10.0, 20.0, 60.0)]
    peer = [dict.fromkeys((name for name, _, _ in serve_vs_llama.FIGURES), 40.0)]
    lines = serve_vs_llama.table(own, peer).splitlines()
    assert lines[2] == "| output, tokens/s | 20.0 | 40.0 | 0.50 |"
    assert lines[4] == "| mean time to first token, ms | 20.0 | 40.0 | 2.00 |"
