"""`pagoda quantize` from a shell: what it writes runs, and what it cannot do leaves nothing behind."""

import json
import signal
import subprocess
import time

import pytest
from pagoda_command import HANGS_AFTER_S, PAGODA, TINY, pagoda


@pytest.mark.parametrize("name", ["Q8_0", "Q4_0", "Q4_K"])
def test_what_it_writes_runs(tmp_path, name):
    out = tmp_path / "tiny.gguf"
    said = pagoda("quantize", TINY, out, "--format", name)
    assert said.stdout.startswith(f"{out}: 0.2 million parameters") and said.stderr == ""
    info = pagoda("info", out).stdout
    assert "llama, 3 layers" in info and ("Q5_0" if name == "Q4_K" else name) in info
    answer = json.loads(pagoda("run", out, "--json", "--device", "reference", "--prompt", "import os", "--max-tokens", 4,
                               "--temperature", 0, "--ignore-eos").stdout)
    original = json.loads(pagoda("run", TINY, "--json", "--device", "reference", "--prompt", "import os", "--max-tokens", 4,
                                 "--temperature", 0, "--ignore-eos").stdout)
    assert answer["prompt_token_ids"] == original["prompt_token_ids"]
    assert len(answer["token_ids"]) == 4


def test_bad_usage_is_one_line_and_leaves_nothing(tmp_path):
    out = tmp_path / "tiny.gguf"
    assert "--format" in pagoda("quantize", TINY, out, "--format", "Q3_K", code=2).stderr
    assert "--format" in pagoda("quantize", TINY, out, code=2).stderr
    assert "OUT" in pagoda("quantize", TINY, "--format", "Q8_0", code=2).stderr
    assert "nowhere" in pagoda("quantize", tmp_path / "nowhere", out, "--format", "Q8_0", code=1).stderr
    missing = tmp_path / "missing/tiny.gguf"
    assert "No such file" in pagoda("quantize", TINY, missing, "--format", "Q8_0", code=1).stderr
    for wrong in (TINY / "config.json/tiny.gguf", "/dev/null/tiny.gguf"):
        assert "Not a directory" in pagoda("quantize", TINY, wrong, "--format", "Q8_0", code=1).stderr
    assert list(tmp_path.iterdir()) == []
    folder = tmp_path / "folder.gguf"
    folder.mkdir()
    assert "expected a file's name" in pagoda("quantize", TINY, folder, "--format", "Q8_0", code=1).stderr
    folder.rmdir()
    pagoda("quantize", TINY, out, "--format", "Q8_0")
    before = out.read_bytes()
    stderr = pagoda("quantize", TINY, out, "--format", "Q4_0", code=2).stderr
    assert "expected a name that is free, got a file; --overwrite replaces it" in stderr
    assert out.read_bytes() == before
    pagoda("quantize", TINY, out, "--format", "Q4_0", "--overwrite")
    before, old = out.read_bytes(), before
    assert before != old
    assert "this is the input" in pagoda("quantize", out, out, "--format", "Q8_0", "--overwrite", code=2).stderr
    assert out.read_bytes() == before


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing(tmp_path, which):
    """One that comes too late leaves the whole file."""
    source = tmp_path / "wide"
    source.mkdir()
    make_wide_checkpoint(source)
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen([PAGODA, "quantize", source, out / "m.gguf", "--format", "Q4_K", "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not list(out.iterdir()) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(which)
    process.wait(timeout=HANGS_AFTER_S)
    assert process.returncode == -which
    assert list(out.iterdir()) == []


def make_wide_checkpoint(folder):
    """A model of 60 million parameters, all zeros: seconds of work."""
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((TINY / name).read_bytes())
    hidden, layers = 2048, 2
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": 512, "hidden_size": hidden, "intermediate_size": hidden,
        "num_hidden_layers": layers, "num_attention_heads": 16, "num_key_value_heads": 16,
        "max_position_embeddings": 512, "tie_word_embeddings": True, "eos_token_id": 1}))
    tensors = {"model.embed_tokens.weight": [512, hidden], "model.norm.weight": [hidden]}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[prefix + norm + ".weight"] = [hidden]
        for part in ("self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down"):
            tensors[prefix + part + "_proj.weight"] = [hidden, hidden]
    header, offset = {}, 0
    for name, shape in tensors.items():
        size = 2 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header)
    text += " " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text.encode())
        file.truncate(8 + len(text) + offset)
