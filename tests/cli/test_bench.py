"""`pagoda bench` and `--profile` from a shell: fields, figures that agree with one another, bad usage."""

import json
import sys

import pytest
from pagoda_command import TINY, pagoda

PHASE_FIELDS = {"prefill_tokens_per_s", "decode_tokens_per_s", "output_tokens_per_s", "total_token_throughput",
                "read_gb_per_s", "machine_read_gb_per_s", "read_share", "prefill_gmac_per_s", "machine_float32_gmac_per_s",
                "prefill_share", "prefill_share_of"}


def figures_of(*args):
    (line,) = pagoda("bench", *args, "--device", "cpu", "--threads", 2, "--json").stdout.splitlines()
    return json.loads(line)


def test_machine_has_a_row_a_thread_count():
    figures = json.loads(pagoda("bench", "machine", "--threads", 2, "--json").stdout)
    assert [row["threads"] for row in figures["by_threads"]] == [1, 2]
    for row in figures["by_threads"]:
        assert row["read_gb_per_s"] > 0 and row["float32_gmac_per_s"] > 0
        assert ("int16_gmac_per_s" in row) == ("int8_gmac_per_s" in row)
    assert figures["machine_read_gb_per_s"] == figures["by_threads"][-1]["read_gb_per_s"]


def test_a_gpu_has_a_line_where_ops_run_on_one():
    assert "GPU" not in pagoda("bench", "machine", "--threads", 1, "--device", "cpu").stdout
    if " mlx" in next(line for line in pagoda("info").stdout.splitlines() if line.startswith("devices:")):
        lines = pagoda("bench", "machine", "--threads", 1, "--device", "mlx").stdout.splitlines()
        assert lines[-1].startswith("GPU: reads ") == (sys.platform == "darwin")


def test_latency_holds_both_phases_to_limits():
    figures = figures_of("latency", TINY, "--input-len", 24, "--output-len", 5, "--batch-size", 3, "--rounds", 2)
    assert PHASE_FIELDS <= figures.keys()
    assert (figures["batch_size"], figures["threads"], figures["device"]) == (3, 2, "cpu")
    assert figures["read_share"] == pytest.approx(figures["read_gb_per_s"] / figures["machine_read_gb_per_s"])
    limit = figures[f"machine_{figures['prefill_share_of']}_gmac_per_s"]
    assert figures["prefill_share"] == pytest.approx(figures["prefill_gmac_per_s"] / limit)
    assert figures["prefill_tokens_per_s"] == pytest.approx(3 * 24 / figures["prefill_s"])
    assert figures["decode_tokens_per_s"] == pytest.approx(3 * 4 / figures["decode_s"])


def test_the_format_of_the_cache_is_told_with_what_fits():
    args = ("latency", TINY, "--input-len", 20, "--output-len", 4, "--rounds", 1, "--num-kv-blocks", 20, "--max-model-len", 64)
    figures = figures_of(*args, "--kv-cache-dtype", "k:int8,v:int4", "--kv-cache-dtype-skip-layers", 1)
    assert (figures["kv_cache_dtype"], figures["kv_cache_skipped_layers"]) == ("k:int8,v:int4", [1])
    assert figures["kv_bytes_per_token"] == 2 * 2 * ((16 + 2) + (8 + 4)) + 2 * 2 * 2 * 16  # two layers of codes, one of bfloat16
    assert (figures["max_model_len"], figures["kv_sequences_of_max_model_len"], figures["kv_sequences"]) == (64, 5, 10)
    text = pagoda("bench", *args, "--device", "cpu", "--threads", 1, "--kv-cache-dtype", "int8").stdout.splitlines()[-1]
    assert text == "KV cache int8: 216 bytes a token; room for 5 sequences of max_model_len, 64 tokens, or 10 as long as here"


def test_latency_of_one_token_has_no_decode():
    figures = figures_of("latency", TINY, "--input-len", 8, "--output-len", 1, "--rounds", 1)
    assert figures["decode_tokens_per_s"] == 0 and figures["read_gb_per_s"] == 0 and figures["prefill_tokens_per_s"] > 0


def test_throughput_counts_every_token_of_every_prompt():
    # more prompts than sequences at once: prefill and decode share steps
    figures = figures_of("throughput", TINY, "--num-prompts", 9, "--input-len", 10, "--output-len", 6, "--max-num-seqs", 4)
    assert PHASE_FIELDS <= figures.keys()
    assert (figures["completed"], figures["total_input_tokens"], figures["total_output_tokens"]) == (9, 90, 54)
    assert figures["request_throughput"] == pytest.approx(9 / figures["duration"])
    assert figures["output_throughput"] == pytest.approx(54 / figures["duration"])
    assert figures["total_token_throughput"] == pytest.approx(144 / figures["duration"])
    assert figures["prefill_s"] + figures["decode_s"] <= figures["duration"]


@pytest.mark.parametrize("command", [["latency"], ["throughput", "--num-prompts", 2]])
def test_without_json_both_phases_are_lines(command):
    lines = pagoda("bench", command[0], TINY, *command[1:], "--input-len", 8, "--output-len", 3).stdout.splitlines()
    assert any(line.startswith("prefill") and "% of the machine's" in line for line in lines)
    assert any(line.startswith("decode") and "GB/s read" in line for line in lines)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_profile_accounts_for_the_time_of_every_step(device):
    (line,) = pagoda("bench", "latency", TINY, "--device", device, "--input-len", 8, "--output-len", 5, "--rounds", 2,
                     "--profile", "--json").stdout.splitlines()
    rows = json.loads(line)["profile"]
    for phase, steps in (("prefill", 2), ("decode", 8)):
        of_phase = {(row["op"], row.get("rows"), row.get("cols")): row for row in rows if row["phase"] == phase}
        assert sum(row["time_share"] for row in of_phase.values()) == pytest.approx(1)
        assert of_phase["attention", None, None]["calls"] == 3 * steps  # layers
        assert of_phase["linear", 512, 64]["calls"] == steps  # the head
        assert of_phase["linear", 512, 64]["format"] == "BF16" and of_phase["linear", 512, 64]["gmac_per_s"] > 0
        assert of_phase["outside ops", None, None]["calls"] == steps


def test_profiles_are_tables_without_json():
    done = pagoda("bench", "throughput", TINY, "--num-prompts", 2, "--input-len", 8, "--output-len", 3, "--profile")
    for word in ("prefill:", "decode:", "linear", "attention", "outside ops"):
        assert word in done.stdout
    run = pagoda("run", TINY, "--prompt-ids", "5,6,7", "--max-tokens", 3, "--ignore-eos", "--profile", "--json")
    assert "decode: 2 steps" in run.stderr and len(run.stdout.splitlines()) == 1
    assert "decode:" not in pagoda("run", TINY, "--prompt-ids", "5,6,7", "--max-tokens", 3).stderr


@pytest.mark.parametrize("args, code, says", [
    (["latency"], 2, "MODEL"),
    (["latency", TINY, "--input-len", 0], 2, "--input-len"),
    (["latency", TINY, "--output-len", "many"], 2, "--output-len"),
    (["latency", TINY, "--batch-size", 0], 2, "--batch-size"),
    (["latency", TINY, "--rounds", 0], 2, "--rounds"),
    (["latency", TINY, "--num-prompts", 3], 2, "--num-prompts"),
    (["latency", TINY, "--input-len", 3000], 2, "3000"),
    (["throughput"], 2, "MODEL"),
    (["throughput", TINY, "--num-prompts", 0], 2, "--num-prompts"),
    (["throughput", TINY, "--num-prompts", -4], 2, "--num-prompts"),
    (["throughput", TINY, "--input-len", 3000, "--num-prompts", 2], 2, "3000"),
    (["throughput", "no/such/model", "--num-prompts", 1], 1, "no/such/model"),
    (["machine", "--threads", "-1"], 2, "--threads"),
    (["machine", "--device", "gpu"], 2, "--device"),
    (["speed"], 2, "subcommand"),
    ([], 2, "subcommand"),
])
def test_bad_usage_is_one_clear_line(args, code, says):
    assert says in pagoda("bench", *args, code=code).stderr


def test_a_lazy_backend_cannot_be_profiled():
    stderr = pagoda("run", TINY, "--device", "mlx", "--prompt", "x", "--profile", code=1).stderr
    assert "native backend" in stderr or "not built" in stderr
