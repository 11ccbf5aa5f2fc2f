"""bench/vs_openvino.py with packages that stand in for OpenVINO's: what is asked of them, what comes of refusals."""

import json
import os
import pathlib
import subprocess
import sys

import comparison
import open_vino
import pytest
import random_checkpoint

TINY_SHAPE = random_checkpoint.ModelShape(hidden=64, layers=2, heads=4, kv_heads=2, head_dim=32, intermediate=96, vocab=400,
                                          context=512)
WORKLOAD = comparison.Workload("prompt 16", 16, 4, 1, ("prefill", "decode"), True)
GENAI = """
import json, types
class TokenizedInputs:
    def __init__(self, input_ids, attention_mask):
        self.ids, self.mask = input_ids.tolist(), attention_mask.tolist()
class GenerationConfig:
    def __init__(self, **settings):
        self.settings = settings
class LLMPipeline:
    def __init__(self, model, device, **properties):
        if "refused" in model:
            raise RuntimeError("no such format")
        self.made = [model, device, properties]
    def generate(self, inputs, config):
        with open(LOG, "a") as log:
            log.write(json.dumps([self.made, inputs.ids, inputs.mask, config.settings]) + "\\n")
        mean = lambda value: lambda: types.SimpleNamespace(mean=value)
        return types.SimpleNamespace(perf_metrics=types.SimpleNamespace(get_ttft=mean(20.0), get_tpot=mean(4.0)))
"""


@pytest.fixture
def packages(tmp_path):
    """A folder where OpenVINO's packages seem to be; their calls stand in calls.jsonl."""
    folder = tmp_path / "openvino"
    folder.mkdir()
    (folder / "openvino.py").write_text("Tensor = lambda values: values\n")
    (folder / "openvino_genai.py").write_text(f"LOG = {str(tmp_path / 'calls.jsonl')!r}\n{GENAI}")
    return tmp_path


def test_figures_are_of_a_fresh_prompt_after_a_warm_up(packages):
    peer = open_vino.OpenVino(packages, 3)
    assert peer.measure("m.gguf", WORKLOAD) == {"prefill": 800, "decode": 250}
    assert peer.measure("m.gguf", WORKLOAD._replace(phases=("decode",))) == {"decode": 250}
    calls = [json.loads(line) for line in (packages / "calls.jsonl").read_text().splitlines()]
    (warm_up, timed, _, second) = calls
    assert timed[0] == ["m.gguf", "CPU", {"INFERENCE_NUM_THREADS": 3}]
    assert len(timed[1][0]) == len(timed[2][0]) == 16 and len(warm_up[1][0]) == 32
    assert timed[3] == {"max_new_tokens": 5, "ignore_eos": True, "do_sample": False}
    assert timed[1] != second[1]


def test_a_refused_file_has_no_figures_and_ends_nothing(packages, capsys):
    model = comparison.Model("tiny", "BF16", pathlib.Path("refused.gguf"), (WORKLOAD,))
    (row, _) = comparison.compare(comparison.Pagoda(os.environ["PAGODA_BINARY"], 1), open_vino.OpenVino(packages, 1), model,
                                  WORKLOAD, 1)
    assert row.cells()[3:] == ["-"] * 6
    assert "refused.gguf: RuntimeError: no such format" in capsys.readouterr().err


def test_the_whole_comparison_prints_a_row_a_phase(packages):
    random_checkpoint.write_checkpoint(packages / "qwen3-0.6b-shape.BF16.gguf", TINY_SHAPE._replace(context=1024))
    script = pathlib.Path(open_vino.__file__).with_name("vs_openvino.py")
    done = subprocess.run([sys.executable, script, os.environ["PAGODA_BINARY"], "--turns", "1", "--threads", "1", "--only", "BF16",
                           "--folder", packages], capture_output=True, text=True, check=True, timeout=600)
    rows = [line for line in done.stdout.splitlines() if line.startswith("| 0.6B shape | BF16 |")]
    assert [row.split(" | ")[2] for row in rows] == ["prefill, prompt 512", "decode, context 128"]
    assert all(row.split(" | ")[6] in ("25,600", "250") for row in rows)
