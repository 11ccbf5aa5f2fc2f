"""Peak memory of the cpu backend on the real checkpoint, every block of the KV pool touched."""

import json
import os
import subprocess
import sys

PAGODA = os.environ["PAGODA_BINARY"]
KV_BYTES = 96 << 20
MIB = 1 << 20


def test_peak_is_the_file_the_pool_and_little_else(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    # 8 x 560 tokens of 23 kB: more than the pool, so that each of its blocks is written
    prompts.write_text("\n".join(json.dumps({"prompt_ids": [100 + i] * 552, "max_tokens": 8}) for i in range(8)))
    answers = tmp_path / "answers.jsonl"
    with answers.open("w") as stdout:
        run = subprocess.Popen([PAGODA, "run", "smollm2", "--device", "cpu", "--prompts-file", prompts, "--ignore-eos",
                                "--json", "--kv-cache-memory-bytes", str(KV_BYTES)], stdout=stdout)
        _, status, usage = os.wait4(run.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0 and len(answers.read_text().splitlines()) == 8
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)  # VmHWM
    info = subprocess.run([PAGODA, "info", "smollm2"], capture_output=True, text=True, check=True).stdout
    file_bytes = os.path.getsize(info.splitlines()[0])
    bound = 1.1 * file_bytes + KV_BYTES + 100 * MIB
    print(f"peak {peak / MIB:.0f} MiB, file {file_bytes / MIB:.0f}, pool {KV_BYTES / MIB:.0f}, bound {bound / MIB:.0f}")
    assert file_bytes < peak <= bound
