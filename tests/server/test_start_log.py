"""What `pagoda serve` says at its start: what was chosen, and why."""

import re

from pagoda_server import PagodaServer


def start_log(**flags):
    """What the log says of each thing, by the word before the colon, and the address."""
    server = PagodaServer(**flags)
    try:
        lines = [line.split("[info] ", 1)[1] for line in server.log.read_text().splitlines() if "[info] " in line]
    finally:
        server.close()
    end = next(i for i, line in enumerate(lines) if line.startswith("listening on "))
    return dict(line.split(": ", 1) for line in lines[:end] if ": " in line), lines[end].removeprefix("listening on ")


def test_it_says_what_it_chose_unasked():
    said, url = start_log(device="auto", threads=0, max_model_len=0)
    assert re.fullmatch(r"llama, 0\.2M parameters, most in BF16, 0\.\d MB; in the API tiny-llama or .*tiny-llama", said["model"])
    on_cpu = r"cpu \(no GPU to compute on was found\); instruction set: \w+ \(the best of this machine\); threads: \d+ \(the physical cores"
    assert re.match(on_cpu + r"|mlx \(a GPU was found\)$", said["device"])
    assert said["context"] == "2048 tokens (the checkpoint's)"
    assert re.match(r"bfloat16 \(the device's\), \d+ bytes a token; \d+ blocks of 16 tokens, [\d.]+ MB \(all contexts\); room for 64 sequences",
                    said["KV cache"])
    assert said["KV cache"].endswith("prefix cache on")
    assert said["keys"] == "none, so that all who reach the address may ask"
    assert said["page"] == url + "/"


def test_it_says_what_was_asked_for():
    said, url = start_log(max_model_len=256, num_kv_blocks=20, kv_cache_dtype="int8", api_key=["one", "two"], root_path="/llm",
                          served_model_name="mine", no_enable_prefix_caching=True)
    assert said["model"].endswith("in the API mine")
    assert said["device"].startswith("cpu (as asked)") and "threads: 2 (as asked)" in said["device"]
    assert said["context"] == "256 tokens (as asked; the checkpoint's: 2048)"
    assert said["KV cache"].startswith("int8 (as asked)") and "20 blocks of 16 tokens" in said["KV cache"]
    assert "(blocks as asked); room for 1 sequences of 256 tokens; prefix cache off" in said["KV cache"]
    assert said["keys"] == "2; each request brings one" and "two" not in str(said)
    assert said["page"] == url + "/llm/"


def test_a_context_that_memory_bounds_is_told():
    said, _ = start_log(num_kv_blocks=4)
    assert said["context"] == "64 tokens (what the KV cache holds; the checkpoint's: 2048)"
