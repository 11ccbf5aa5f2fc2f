"""bench/vs_llama_cpp.py without llama.cpp: the checkpoint it makes, the peer's output it reads, the table it prints."""

import argparse
import json
import os
import pathlib
import re
import subprocess

import comparison
import llama_cpp
import pytest
import random_checkpoint
import vs_llama_cpp

TINY_SHAPE = random_checkpoint.ModelShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, intermediate=96, vocab=400,
                                          context=512)
PROMPT = vs_llama_cpp.Workload("prompt 16", 16, 4, 1, ("prefill", "decode"), True)
DECODE = vs_llama_cpp.Workload("context 16", 16, 4, 1, ("decode",), True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "tiny.gguf"
    random_checkpoint.write_checkpoint(path, TINY_SHAPE)
    return path


def test_pagoda_runs_the_random_checkpoint(checkpoint):
    turn = vs_llama_cpp.Pagoda(os.environ["PAGODA_BINARY"], 1).measure(checkpoint, PROMPT)
    assert turn.tokens_per_s["prefill"] > 0 and turn.tokens_per_s["decode"] > 0
    assert 0 < turn.shares["prefill"] < 2 and turn.read_gb_per_s > 0


def test_loading_is_a_row_a_model_that_loads(checkpoint):
    pagoda = vs_llama_cpp.Pagoda(os.environ["PAGODA_BINARY"], 1)
    models = [vs_llama_cpp.Model("tiny", "BF16", checkpoint, ()), vs_llama_cpp.Model("no", "F32", checkpoint / "no", ())]
    (head, _, line) = vs_llama_cpp.load_table(pagoda, models).splitlines()
    assert "peak, MB" in head and re.fullmatch(r"\| tiny \| BF16 \| 0 \| [0-9.]+ \| [0-9]+ \| 167 \|", line)


def test_the_peak_is_not_that_of_who_asks(checkpoint):
    own = bytearray(256 << 20)
    assert vs_llama_cpp.Pagoda(os.environ["PAGODA_BINARY"], 1).load(checkpoint)[1] < len(own)


def test_the_checkpoint_is_a_function_of_its_seed(checkpoint, tmp_path):
    for seed in (0, 1):
        random_checkpoint.write_checkpoint(tmp_path / f"{seed}.gguf", TINY_SHAPE, seed)
    assert (tmp_path / "0.gguf").read_bytes() == checkpoint.read_bytes() != (tmp_path / "1.gguf").read_bytes()


FULL_SHAPES = [("qwen3-0.6b", 596_049_920), ("qwen3-30b-a3b-16", 10_592_262_144), ("gpt-oss-20b", 20_914_757_184)]


@pytest.mark.parametrize(("shape", "parameters"), FULL_SHAPES)
def test_the_full_shape_has_the_parameters_of_its_name(shape, parameters):
    assert sum(tensor.num_values for tensor in random_checkpoint.tensors_of(random_checkpoint.SHAPES[shape])) == parameters


def test_pagoda_counts_the_experts_that_a_mixture_reads(tmp_path):
    shape = random_checkpoint.SHAPES["qwen3-30b-a3b-16"]._replace(hidden=256, layers=2, heads=4, kv_heads=2, head_dim=32,
                                                                 experts=8, chosen_experts=2, expert_width=64, vocab=400)
    random_checkpoint.write_checkpoint(tmp_path / "mixture.gguf", shape)
    command = [os.environ["PAGODA_BINARY"], "bench", "latency", tmp_path / "mixture.gguf", "--device", "cpu", "--threads", "1",
               "--input-len", "8", "--output-len", "64", "--json"]
    said = [json.loads(subprocess.run([*command, "--batch-size", size], capture_output=True, check=True).stdout)
            for size in ("1", "8")]
    alone, together = (figures["read_gb_per_s"] * figures["decode_s"] for figures in said)
    assert alone < together < 8 * alone


def test_gpt_oss_answers_in_mxfp4(tmp_path):
    shape = random_checkpoint.SHAPES["gpt-oss-20b"]._replace(hidden=128, layers=2, heads=4, kv_heads=2, intermediate=96, experts=4,
                                                             chosen_experts=2, expert_width=96, vocab=400)
    random_checkpoint.write_checkpoint(tmp_path / "m.gguf", shape)
    turn = vs_llama_cpp.Pagoda(os.environ["PAGODA_BINARY"], 1).measure(tmp_path / "m.gguf", PROMPT)
    assert turn.tokens_per_s["prefill"] > 0 and turn.tokens_per_s["decode"] > 0


@pytest.fixture
def peer(tmp_path):
    """Tools that note their arguments and answer as llama.cpp's do."""
    peer = object.__new__(llama_cpp.LlamaCpp)
    peer.threads, peer.tools = 2, tmp_path
    for tool, answer in (("llama-bench", [{"avg_ts": 12.5}]), ("llama-batched-bench", {"speed_pp": 70.0, "speed_tg": 30.0})):
        script = tmp_path / tool
        script.write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/{tool}.args\necho '{json.dumps(answer)}'\n")
        script.chmod(0o755)
    return peer


def arguments(peer, tool):
    return (peer.tools / f"{tool}.args").read_text()


def test_single_phases_are_asked_of_llama_bench(peer):
    assert peer.measure("m.gguf", DECODE) == {"decode": 12.5}
    assert "-p 0 -n 4 -d 16 -t 2 -fa 1" in arguments(peer, "llama-bench")
    assert peer.measure("m.gguf", PROMPT._replace(phases=("prefill",))) == {"prefill": 12.5}
    assert "-p 16 -n 0 -t 2 -fa 1" in arguments(peer, "llama-bench")


def test_batches_and_both_phases_are_asked_of_batched_bench(peer):
    assert peer.measure("m.gguf", PROMPT) == {"prefill": 70, "decode": 30}
    peer.measure("m.gguf", DECODE._replace(batch=32))
    assert "-c 640 -npp 16 -ntg 4 -npl 32 -t 2 -fa on" in arguments(peer, "llama-batched-bench")


def test_a_peer_that_fails_says_why(peer):
    (peer.tools / "llama-bench").write_text("#!/bin/sh\necho first >&2\necho 'no such model' >&2\nexit 3\n")
    with pytest.raises(llama_cpp.PeerError, match=r"llama-bench: exit 3: no such model"):
        peer.measure("m.gguf", DECODE)


def row(name, pagoda, peer):
    model = vs_llama_cpp.Model("small", name, pathlib.Path(name), (DECODE,))
    turns = [comparison.Turn({"decode": speed}, {"decode": speed / 1000}, 40.0, 400.0) for speed in pagoda]
    return comparison.Row(model, DECODE, "decode", turns,
                            [comparison.Turn({"decode": speed}, {}, 50.0, 500.0) for speed in peer])


def test_rows_have_medians_shares_and_limits():
    assert row("Q4_1", [300, 100, 200], [50, 10, 90]).cells() == [
        "small", "Q4_1", "decode, context 16", "200", "20 %", "40 GB/s", "50", "50 GB/s", "4.00"]
    assert row("Q4_0", [], [100]).cells()[3:] == ["-", "-", "-", "100", "50 GB/s", "-"]
    assert row("F16", [100], []).cells()[3:] == ["100", "10 %", "40 GB/s", "-", "-", "-"]


def test_the_best_of_all_formats_stands_beside_the_default_one():
    lines = vs_llama_cpp.best_lines([row("Q4_1", [200], [50]), row("Q4_0", [], [100]), row("BF16", [80], [70])])
    assert lines.split("\n") == ["", "small Q4_1, decode, context 16: 2.00 x llama.cpp's best format, Q4_0", ""]


def test_a_format_that_the_peer_refuses_is_no_rival():
    rows = [row("Q4_1", [200], [50]), row("Q8_0", [90], [60]), row("BF16", [80], [])]
    assert "3.33 x llama.cpp's best format, Q8_0" in vs_llama_cpp.best_lines(rows)
    assert vs_llama_cpp.best_lines([row("Q4_1", [200], []), row("Q8_0", [90], [60])]) == ""


def test_comparisons_print_what_was_asked_for_row_by_row(capsys, checkpoint, peer):
    model = vs_llama_cpp.Model("tiny", "BF16", checkpoint, (PROMPT, DECODE))
    flags = argparse.Namespace(only="context", turns=2)
    (only,) = vs_llama_cpp.print_comparisons(vs_llama_cpp.Pagoda(os.environ["PAGODA_BINARY"], 1), peer, [model], flags)
    assert len(only.pagoda) == len(only.peer) == 2 and only.phase == "decode"
    assert len(capsys.readouterr().out.splitlines()) == 3
