"""`pagoda` from a shell: what it prints, where it fails, and how."""

import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess

import pytest
from pagoda_command import DATA, HANGS_AFTER_S, PAGODA, TINY, pagoda


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


def greedy_answer(model):
    case = json.loads((TINY / "golden.json").read_text())["cases"][1]
    done = pagoda("run", model, "--json", "--temperature", 0, "--prompt-ids", ",".join(map(str, case["prompt_ids"])),
                  "--max-tokens", 6)
    return json.loads(done.stdout)


def test_the_tokenizers_eos_token_ends_a_text(tmp_path):
    model = shutil.copytree(TINY, tmp_path / "model")
    unended = greedy_answer(model)["token_ids"]
    assert len(unended) == 6
    vocabulary = json.loads((TINY / "tokenizer.json").read_text())["model"]["vocab"]
    spelling = {token: text for text, token in vocabulary.items()}
    config = model / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token": spelling[unended[2]]}))
    answer = greedy_answer(model)
    assert answer["finish_reason"] == "stop"
    assert answer["token_ids"] == unended[:unended.index(unended[2]) + 1]


def test_a_tensor_that_nothing_reads_is_refused_by_name(tmp_path):
    model = shutil.copytree(TINY, tmp_path / "model")
    weights = (model / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8:8 + size])
    header["model.layers.0.self_attn.sinks"] = header["model.norm.weight"] | {
        "data_offsets": [len(weights) - 8 - size, len(weights) - 8 - size + 128]}
    text = json.dumps(header).encode()
    (model / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + weights[8 + size:] + bytes(128))
    assert "model.layers.0.self_attn.sinks" in pagoda("run", model, "--prompt", "x", code=1).stderr


def sampled(model, *args):
    done = pagoda("run", model, "--json", "--chat", "Why is the sky blue?", "--max-tokens", 24, "--seed", 5, *args)
    return json.loads(done.stdout)


def test_the_default_model_samples_as_its_card_says():
    by_card = sampled("smollm2")
    assert by_card["token_ids"] == sampled("smollm2", "--temperature", 0.2, "--top-p", 0.9)["token_ids"]
    unasked = sampled("smollm2", "--generation-config", "none")["token_ids"]
    assert unasked == sampled("smollm2", "--temperature", 1, "--top-p", 1)["token_ids"] != by_card["token_ids"]
    assert "sky" in by_card["text"]


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


@pytest.fixture
def broken(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    return folder


PROMPT = ("import os", ("--max-tokens", 3, "--temperature", 0))


def test_a_prompt_comes_as_an_argument_or_on_standard_input(tmp_path):
    text, flags = PROMPT
    wanted = pagoda("run", TINY, "--prompt", text, *flags).stdout
    file = tmp_path / "prompt.txt"
    file.write_text(text)
    assert pagoda("run", TINY, text, *flags).stdout == wanted
    assert pagoda("run", TINY, "--prompt-file", file, *flags).stdout == wanted
    for arguments in ([], ["-"], ["--prompt", "-"], ["--prompt-file", "-"]):
        assert pagoda("run", TINY, *arguments, *flags, stdin=text + "\n").stdout == wanted
    line = json.dumps({"prompt": text})
    assert pagoda("run", TINY, "--prompts-file", "-", *flags, stdin=line).stdout == wanted


def test_an_answer_that_was_cut_says_so():
    cut = pagoda("run", TINY, "import", "--max-tokens", 3, "--ignore-eos")
    assert "[the answer stopped at --max-tokens 3]" in cut.stderr.splitlines()
    for beyond in ((), ("--max-tokens", 1000000)):
        full = pagoda("run", TINY, "--prompt-ids", "5,6,7", "--max-model-len", 8, "--ignore-eos", *beyond)
        assert "[the answer stopped at the context's end, after 8 tokens]" in full.stderr.splitlines()
        assert ("[--max-tokens 1000000: the answer has at most 5, to the context's end]" in full.stderr.splitlines()) == bool(beyond)
    assert "--max-tokens" not in pagoda("run", TINY, "--prompt-ids", "5,6,7", "--max-model-len", 8, "--max-tokens", 5).stderr.split("stopped")[0]
    ended = pagoda("run", TINY, "import", "--choice", "import os", "--max-tokens", 2048, "--json")
    assert ended.stderr.startswith("[--max-tokens 2048: the answer has at most 204") and len(ended.stderr.splitlines()) == 1
    ended = pagoda("run", TINY, "import", "--choice", "import os")
    assert "stopped" not in ended.stderr


def test_pagoda_alone_prints_its_help():
    done = pagoda()
    assert "Usage: pagoda" in done.stdout and "quantize" in done.stdout and done.stderr == ""


def test_sizes_are_read_with_units():
    (answer,) = run_json("import", "--max-model-len", "2k", "--kv-cache-memory-bytes", "64MiB", "--max-tokens", 2)
    assert len(answer["token_ids"]) <= 2


def test_llama_cpps_names_of_a_cache_are_told_in_ours():
    done = pagoda("run", TINY, "import", "--cache-type-k", "q8_0", "--cache-type-v", "q4_0", "--max-tokens", 2)
    assert "--kv-cache-dtype k:int8,v:int4" in done.stderr


def test_a_safetensors_file_is_the_folder_around_it():
    assert run_json("--prompt-ids", "5,6", "--max-tokens", 2)
    answer = json.loads(pagoda("run", TINY / "model.safetensors", "--json", "--prompt-ids", "5,6", "--max-tokens", 2).stdout)
    assert answer["model"] == TINY.name


def test_token_ids_need_no_tokenizer(broken):
    (wanted,) = run_json("--prompt-ids", "5,6,7", "--max-tokens", 4, "--ignore-eos")
    (broken / "tokenizer.json").rename(broken / "tokenizer.model")
    done = pagoda("run", broken, "--json", "--temperature", 0, "--prompt-ids", "5,6,7", "--max-tokens", 4, "--ignore-eos")
    answer = json.loads(done.stdout)
    assert answer["token_ids"] == wanted["token_ids"] and answer["text"] == ""
    for args in (["run", broken, "a text"], ["run", broken, "--prompt-ids", "5", "--stop", "x"], ["serve", broken, "--port", "0"],
                 ["quantize", broken, broken / "m.gguf", "--format", "Q8_0"]):
        stderr = pagoda(*args, code=1).stderr
        assert "expected tokenizer.json, got tokenizer.model alone" in stderr and "save_pretrained" in stderr
    (broken / "tokenizer.model").rename(broken / "tekken.json")
    assert "convert_tekken_tokenizer" in pagoda("run", broken, "a text", code=1).stderr
    (broken / "tekken.json").unlink()
    assert "expected tokenizer.json, got none" in pagoda("run", broken, "a text", code=1).stderr


@pytest.mark.parametrize("limit", [5 * 10**9, 10**10])
def test_a_limit_of_the_address_space_leaves_room_for_all(limit):
    done = subprocess.run([PAGODA, "run", TINY, "--chat", "hello", "--max-tokens", "2"], capture_output=True, text=True,
                          timeout=HANGS_AFTER_S, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0, done.stderr


def test_pull_runs_nothing_that_lies_in_the_current_folder(tmp_path):
    for module in ("pip", "zipfile"):
        (tmp_path / module).mkdir()
        for name in ("__init__.py", "__main__.py"):
            (tmp_path / module / name).write_text("import pathlib\npathlib.Path('it-ran').touch()\n")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run([PAGODA, "pull", "smollm2"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS_AFTER_S)
    assert done.returncode == 1 and "-I -m pip: expected exit status 0" in done.stderr
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize("args, code, says", [
    (["run", TINY, "two", "words"], 2, "a text with spaces in it needs quotes"),
    (["run", TINY, "x", "--max-model-len", "4Q"], 2, "--max-model-len: expected a whole number of 0 to 16777216, got 4Q"),
    (["run", "smolm2", "x"], 1, "did you mean smollm2?"),
    (["run", "Qwen/Qwen3-0.6B", "x"], 1, "`pagoda pull hf:Qwen/Qwen3-0.6B`"),
    (["run", "models/none.gguf", "x"], 1, "models/none.gguf: no such file or folder"),
    (["serve"], 2, "expected MODEL, got none"),
    (["serve", TINY, "--port", "70000"], 2, "--port: expected a whole number of 0 to 65535, got 70000"),
    (["serve", TINY, "--api-key="], 2, "--api-key: expected a value after the =, got none"),
    (["serve", TINY, "--api-key", ""], 2, "[--api-key] expected a key, got an empty one: is a variable not set?"),
    (["serve", TINY, "--api-key", "K", "--api-key", ""], 2, "[--api-key] expected a key, got an empty one"),
    (["serve", TINY, "--api-key-file", "/dev/null"], 2, "/dev/null: expected a key a line, got none"),
    (["info", "--device", "cuda"], 1, "cuda"),
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
    (["run", TINY, "x", "--regex", "("], 2, "'--regex': invalid regex: unclosed group, at '('"),
    (["run", TINY, "x", "--regex", ""], 2, "'--regex': expected a regular expression, got an empty text"),
    (["run", TINY, "x", "--json-schema", '{"$ref": "#"}'], 2, "'--json-schema': #: expected a schema behind '$ref'"),
    (["run", TINY, "--prompt", "x", "--max-model-len", "1"], 2, "expected 2 tokens at least, a prompt's and an answer's, got 1"),
    (["run", TINY, "--prompt", "x", "--kv-cache-layout", "contiguous", "--num-kv-blocks", "8"], 2, "num_kv_blocks is of the paged layout"),
    (["run", TINY, "x", "--kv-cache-dtype", "fp8_e5m2"], 2, "k:int8,v:int4, got fp8_e5m2; take int8"),
    (["run", TINY, "x", "--cache-type-v", "q4_1"], 2, "expected f32, f16, bf16, q8_0 or q4_0, got q4_1; take q4_0"),
    (["run", TINY, "x", "--cache-type-k", "q8_0", "--kv-cache-dtype", "int8"], 2, "got both"),
    (["run", TINY, "x", "--kv-cache-dtype", "int8", "--kv-cache-dtype-skip-layers", "3"], 2, "layers to skip: expected 0 to 2, got 3"),
    (["perplexity", TINY, "--file", "x", "--compare", "fp8"], 2, "--compare: expected auto, float32"),
    (["frobnicate"], 2, ""),
    (["perplexity", TINY, "--file", "no/such/file"], 1, "no/such/file"),
    (["pull", "nobody-knows"], 2, "nobody-knows"),
])
def test_bad_usage_is_one_clear_line(args, code, says):
    assert says in pagoda(*args, code=code).stderr


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


def test_perplexity_compares_two_formats_of_the_cache(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("import os, json, random\n" * 8)
    def compared(dtype, other):
        args = ("perplexity", TINY, "--file", text, "--device", "cpu", "--kv-cache-dtype", dtype, "--compare", other)
        figures = json.loads(pagoda(*args, "--json").stdout)
        assert (figures["kv_cache_dtype"], figures["compared_kv_cache_dtype"]) == (dtype, other)
        assert figures["perplexity_ratio"] == pytest.approx(figures["perplexity"] / figures["compared_perplexity"])
        line = pagoda(*args).stdout.splitlines()[1]
        assert line.startswith(f"KV cache {dtype} beside {other}, ") and f"ratio {figures['perplexity_ratio']:.6f};" in line
        assert line.endswith(f"{figures['mean_logprob_difference']:.6f} in the mean, {figures['largest_logprob_difference']:.6f} at most")
        return figures
    same = compared("int8", "int8")
    assert (same["perplexity_ratio"], same["mean_logprob_difference"], same["largest_logprob_difference"]) == (1, 0, 0)
    codes = compared("k:int8,v:int4", "float32")
    assert codes["largest_logprob_difference"] > codes["mean_logprob_difference"] > 0


@pytest.mark.parametrize("dtype, most, mean", [("int8", 1.001, 0.03), ("k:int8,v:int4", 1.013, 0.08), ("int4", 1.065, 0.22)])
def test_codes_predict_a_text_nearly_as_well_as_float32(dtype, most, mean):
    args = ("perplexity", "smollm2", "--file", DATA / "perplexity.txt", "--device", "cpu", "--kv-cache-dtype", dtype, "--compare", "float32")
    figures = json.loads(pagoda(*args, "--json").stdout)
    assert figures["perplexity_ratio"] <= most and 0 < figures["mean_logprob_difference"] <= mean
    golden = json.loads((DATA / "perplexity.json").read_text())["perplexity"]
    assert figures["compared_perplexity"] == pytest.approx(golden, rel=1e-4)


def test_bench_latency_prints_its_fields():
    figures = json.loads(pagoda("bench", "latency", TINY, "--input-len", 16, "--output-len", 4, "--json").stdout)
    assert {"prefill_tokens_per_s", "decode_tokens_per_s", "output_tokens_per_s", "read_gb_per_s",
            "machine_read_gb_per_s"} <= figures.keys()


def info_tables(*args):
    """The tables of `info --ops`: of ops, and of attention by the cache's format, with its heading."""
    ops, *attention = ("op " + pagoda("info", "--ops", *args).stdout.split("\nop ")[1]).split("\n\n")
    return ops.splitlines(), [table.splitlines() for table in attention]


def test_info_prints_the_matrix_of_ops():
    table, _ = info_tables()
    columns = [table[0].index(name) for name in ("reference", "cpu", "mlx", "cuda")]
    assert any(line.startswith("top_k_top_p_min_p ") for line in table)
    for line in table[1:]:
        assert len(line) <= 80
        assert [line[column - 1] + line[column] for column in columns] in (
            [" y", " y", " y", " a"], [" y", " y", " a", " a"], [" y", " y", " y", " y"])


def test_info_prints_how_attention_reads_each_format_of_the_cache():
    _, [table] = info_tables()
    assert table[0] == "attention by the KV cache's format, heads of at most 512"
    rows = [re.split(r"  +", line) for line in table[1:]]
    assert rows[0] == ["cache", "reference", "cpu", "mlx", "cuda"]
    assert [row[0] for row in rows[1:]] == ["float32", "bfloat16", "float16", "int8", "k:int8,v:int4", "int4"]
    for name, reference, cpu, mlx, cuda in rows[1:]:
        has_codes = "int" in name
        assert (reference, cpu) == (("as read", "codes") if has_codes else ("floats", "floats"))
        assert {mlx, cuda} <= {"absent", cpu, "as read" if has_codes else "floats"}
    _, [table] = info_tables(TINY, "--device", "cpu", "--kv-cache-dtype", "k:int4,v:int8")
    assert table[0].endswith(", heads of 16")
    assert [line.split() for line in table[1:]] == [["cache", "cpu"], ["k:int4,v:int8", "decoded"]]


def test_info_takes_a_device():
    assert "devices: cpu\n" in pagoda("info", "--device", "cpu").stdout
    header, *_ = [line for line in pagoda("info", "--device", "reference", "--ops").stdout.splitlines() if line.startswith("op ")]
    assert header.split() == ["op", "reference"]
    assert "3 layers" in pagoda("info", TINY, "--device", "cpu").stdout


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["info", TINY], ["run", TINY, "--prompt-ids", "5,6,7"],
                                  ["run", TINY, "--prompt-ids", "5,6,7", "--json"]])
def test_an_answer_that_cannot_be_written_is_a_failure(args):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PAGODA, *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=HANGS_AFTER_S)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("pagoda: standard output could not be written"), done.stderr


# With what one page of a pipe does not hold, or what ends only after very long.
UNREAD = [["--help"], ["man"], ["completions", "zsh"], ["info", "--ops"], ["list"], ["run", TINY, "import", "--max-tokens", "1000"],
          ["run", TINY, "--prompts-file", "-"], ["chat", TINY, "--max-tokens", "4"]]


@pytest.mark.parametrize("args", UNREAD, ids=lambda args: args[0])
def test_a_pipe_that_nobody_reads_ends_it_quietly(args):
    reader, writer = os.pipe()
    os.close(reader)
    typed = '{"prompt": "import"}\n' if "--prompts-file" in args else "hello\nhello\n"
    done = subprocess.run([PAGODA, *map(str, args)], input=typed.encode(), stdout=writer, stderr=subprocess.PIPE, check=False,
                          timeout=HANGS_AFTER_S)
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE and done.stderr == b""  # a shell says 141
