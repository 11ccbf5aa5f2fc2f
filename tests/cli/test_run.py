"""`pagoda` from a shell: what it prints, where it fails, and how."""

import json
import shutil
import struct

import pytest
from pagoda_command import DATA, TINY, pagoda


def run_json(*args):
    lines = pagoda("run", TINY, "--json", "--temperature", 0, *args).stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(params=["cpu", "reference"])
def device(request):
    return request.param


def test_json_has_every_field(device):
    (answer,) = run_json("--device", device, "--prompt-ids", "5,6,7", "--max-tokens", 4, "--ignore-eos",
                         "--logprobs", 2, "--prompt-logprobs")
    assert answer["device"] == device
    assert answer["prompt_token_ids"] == [5, 6, 7]
    assert len(answer["token_ids"]) == 4 and answer["finish_reason"] == "length"
    assert [entry["token_id"] for entry in answer["logprobs"]] == answer["token_ids"]
    for entry in answer["logprobs"]:
        assert len(entry["top"]) == 2 and entry["top"][0] == [entry["token_id"], entry["logprob"]]
    assert answer["prompt_logprobs"][0] is None and len(answer["prompt_logprobs"]) == 3
    assert {"load_s", "prefill_s", "prefill_tokens_per_s", "decode_s", "decode_tokens_per_s",
            "read_gb_per_s"} <= answer["timing"].keys()
    for value in answer["prompt_logprobs"][1:]:  # reads back as the very float32
        assert struct.unpack("f", struct.pack("f", value))[0] == value


def test_golden_tokens_come_out(device):
    case = json.loads((TINY / "golden.json").read_text())["cases"][1]
    (answer,) = run_json("--device", device, "--prompt-ids", ",".join(map(str, case["prompt_ids"])),
                         "--max-tokens", 7, "--ignore-eos")  # the eighth is a near tie
    assert answer["token_ids"] == case["greedy_ids"][:7]


def test_prompts_of_a_file_run_together_and_equal_each_alone(tmp_path):
    prompts = [{"prompt_ids": [9, 8, 7], "max_tokens": 5}, {"prompt": "import os", "max_tokens": 3},
               {"chat": "hello", "system": "be kind", "max_tokens": 2, "temperature": 0.8, "seed": 3}]
    file = tmp_path / "prompts.jsonl"
    file.write_text("\n".join(map(json.dumps, prompts)) + "\n\n")
    together = run_json("--prompts-file", file, "--ignore-eos")
    assert [len(answer["token_ids"]) for answer in together] == [5, 3, 2]
    for prompt, answer in zip(prompts, together):
        file.write_text(json.dumps(prompt))
        (alone,) = run_json("--prompts-file", file, "--ignore-eos")
        assert alone["logits_hash"] == answer["logits_hash"] and alone["token_ids"] == answer["token_ids"]


@pytest.mark.parametrize("line", [
    {"prompt": "x", "max_tokens": 1.5}, {"prompt": "x", "max_tokens": 1 << 40}, {"prompt": 7}, {"prompt": "x", "stop": [1]},
    {"prompt": "x", "ignore_eos": 1}, {"prompt_ids": [1, "2"]}, {"prompt": "x", "seed": -1}, {"prompt": "x", "wings": 2},
    {}, [1], "x"])
def test_a_wrong_prompt_line_is_named(tmp_path, line):
    file = tmp_path / "prompts.jsonl"
    file.write_text(json.dumps({"prompt": "fine"}) + "\n" + json.dumps(line))
    assert "prompts.jsonl:2" in pagoda("run", TINY, "--prompts-file", file, code=2).stderr


def test_warnings_stay_out_of_the_answers():
    done = pagoda("run", TINY, "--json", "--prompt", "x", "--max-tokens", 2, "--max-model-len", 1 << 20)
    assert "max_model_len" in done.stderr
    assert len(json.loads(done.stdout)["token_ids"]) <= 2


def test_text_streams_without_json():
    done = pagoda("run", TINY, "--prompt", "import", "--max-tokens", 3, "--temperature", 0)
    assert done.stdout.endswith("\n") and "tokens/s" in done.stderr


@pytest.mark.parametrize("args, code, says", [
    (["run", "no/such/model", "--prompt", "x"], 1, "no/such/model"),
    (["run", TINY, "--prompt", "x", "--device", "cuda"], 1, "cuda"),
    (["run", TINY, "--prompt", "x", "--device", "tpu"], 2, "--device"),
    (["run", TINY], 2, "--prompt"),
    (["run", TINY, "--prompt", "x", "--chat", "y"], 2, "one of"),
    (["run", TINY, "--prompt-file", "no/such/file"], 1, "no/such/file"),
    (["run", TINY, "--prompt-ids", "5,99999"], 2, "99999"),
    (["run", TINY, "--prompt-ids", "-3"], 2, "-3"),
    (["run", TINY, "--prompt", ""], 2, "[prompt]"),
    (["run", TINY, "--prompt-ids", ",".join(["5"] * 3000)], 2, "3000"),
    (["run", TINY, "--prompt", "x", "--temperature", "-1"], 2, "temperature"),
    (["run", TINY, "--prompt", "x", "--max-tokens", "many"], 2, "--max-tokens"),
    (["frobnicate"], 2, ""),
    (["perplexity", TINY, "--file", "no/such/file"], 1, "no/such/file"),
    (["pull", "nobody-knows"], 2, "nobody-knows"),
])
def test_bad_usage_is_one_clear_line(args, code, says):
    assert says in pagoda(*args, code=code).stderr


@pytest.fixture
def broken(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    return folder


def edit_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config))


def test_an_unknown_architecture_is_named(broken):
    edit_config(broken, model_type="frobnet", architectures=["FrobnetForCausalLM"])
    assert "frobnet" in pagoda("run", broken, "--prompt", "x", code=1).stderr


def test_a_wrong_shape_names_tensor_and_both_shapes(broken):
    edit_config(broken, intermediate_size=128)
    stderr = pagoda("run", broken, "--prompt", "x", code=1).stderr
    assert "mlp.gate_proj.weight" in stderr and "128 x 64" in stderr and "112 x 64" in stderr


def test_a_missing_tensor_is_named(broken):
    edit_config(broken, num_hidden_layers=4)
    assert "model.layers.3." in pagoda("run", broken, "--prompt", "x", code=1).stderr


def test_a_truncated_file_is_refused(broken):
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "model.safetensors" in pagoda("run", broken, "--prompt", "x", code=1).stderr


def test_a_truncated_gguf_is_refused(tmp_path):
    file = tmp_path / "cut.gguf"
    file.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 1 << 40))
    assert "cut.gguf" in pagoda("run", file, "--prompt", "x", code=1).stderr


def test_perplexity_prints_the_golden_fields(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("import os, json, random\n" * 20)
    figures = json.loads(pagoda("perplexity", TINY, "--file", text, "--context", 32, "--json").stdout)
    assert figures.keys() == json.loads((DATA / "perplexity.json").read_text()).keys()
    windows = -(-figures["num_tokens"] // 32)
    assert figures["scored_tokens"] == figures["num_tokens"] - windows and figures["perplexity"] > 1


def test_bench_latency_prints_its_fields():
    figures = json.loads(pagoda("bench", "latency", TINY, "--input-len", 16, "--output-len", 4, "--json").stdout)
    assert {"prefill_tokens_per_s", "decode_tokens_per_s", "output_tokens_per_s", "read_gb_per_s",
            "machine_read_gb_per_s"} <= figures.keys()


def test_info_prints_the_matrix_of_ops():
    table = pagoda("info", "--ops").stdout
    assert "attention" in table and "reference" in table
