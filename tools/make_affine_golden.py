#!/usr/bin/env python3
"""Makes the checkpoint tests/golden/data/tiny-llama-affine out of tiny-llama with mlx_lm, and its golden outputs with MLX.

Needs: pip install 'mlx[cpu]==0.32.4' mlx-lm==0.32.2. Every width stands in it once, some matrices stay as they were, and the golden
outputs are computed in float32: activations, scales and biases are widened before.
"""

import json
import pathlib
import shutil

import mlx.core as mx
import mlx_lm
from mlx.utils import tree_map

DATA = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "data"
SOURCE = DATA / "tiny-llama"
TARGET = DATA / "tiny-llama-affine"
NUM_LISTED = 5

# The first that a module's path ends in; what none names has 4 bits in groups of 64.
WIDTHS = {
    "model.layers.0.self_attn.q_proj": {"bits": 2, "group_size": 32},
    "model.layers.1.self_attn.q_proj": {"bits": 3, "group_size": 32},
    "model.layers.1.mlp.gate_proj": False,
    "self_attn.k_proj": {"bits": 5, "group_size": 64},
    "self_attn.v_proj": {"bits": 6, "group_size": 64},
    "model.embed_tokens": {"bits": 6, "group_size": 32},
    "lm_head": {"bits": 8, "group_size": 64},
}


def widths_of(path, module):
    return next((widths for name, widths in WIDTHS.items() if path.endswith(name)), True)


def logprobs_of(model, ids):
    logits = model(mx.array([ids]))[0]
    return (logits - mx.logsumexp(logits, axis=-1, keepdims=True)).tolist()


def golden_case(model, prompt_ids, num_steps):
    ids = list(prompt_ids)
    case = {"prompt_ids": prompt_ids, "greedy_ids": [], "top1_margin": [], "top5_logprobs": []}
    for _ in range(num_steps):
        last = logprobs_of(model, ids)[-1]
        best = sorted(range(len(last)), key=lambda token: -last[token])[:NUM_LISTED]
        case["greedy_ids"].append(best[0])
        case["top1_margin"].append(round(last[best[0]] - last[best[1]], 6))
        case["top5_logprobs"].append([[token, round(last[token], 6)] for token in best])
        ids.append(best[0])
    rows = logprobs_of(model, prompt_ids)
    following = [round(row[token], 6) for row, token in zip(rows, prompt_ids[1:])]
    case["prompt_logprobs"] = [None] + following
    return case


def main():
    shutil.rmtree(TARGET, ignore_errors=True)
    mlx_lm.convert(str(SOURCE), mlx_path=str(TARGET), quantize=True, q_group_size=64, q_bits=4, quant_predicate=widths_of)
    model, _ = mlx_lm.load(str(TARGET))
    model.update(tree_map(lambda a: a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a, model.parameters()))
    cases = json.loads((SOURCE / "golden.json").read_text())["cases"]
    golden = [golden_case(model, case["prompt_ids"], len(case["greedy_ids"])) for case in cases]
    source = f"MLX {mx.__version__}, float32 arithmetic on the groups that mlx_lm {mlx_lm.__version__} wrote, no KV cache"
    (TARGET / "golden.json").write_text(json.dumps({"source": source, "cases": golden}) + "\n")
    for path in TARGET.iterdir():
        if path.name not in ("config.json", "model.safetensors", "golden.json"):
            path.unlink()


if __name__ == "__main__":
    main()
