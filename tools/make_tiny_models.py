#!/usr/bin/env python3
"""Makes the tiny random checkpoints of tests/golden/data out of their config.json, with golden outputs by Hugging Face transformers.

Needs: pip install torch==2.15.0 transformers==5.24.0 safetensors. Usage: make_tiny_models.py NAME..., where tests/golden/data/NAME holds a
config.json in the form of the family's published files. It writes model.safetensors (bf16) and golden.json beside it: what float32
arithmetic on the bf16 weights gives without a cache. Where longrope has two sets of factors, golden.json has the long ones at all positions,
as an engine that serves more than the original context computes them, and golden_short.json the short ones.
"""

import itertools
import json
import pathlib
import random
import sys
import zlib

import safetensors.torch
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

DATA = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "data"
PROMPT_LENGTHS = (1, 5, 40, 131)
NUM_STEPS = 16
NUM_LISTED = 5
FIRST_PROMPT_ID = 4  # the ids below are special tokens
LAST_PROMPT_ID = 279  # the ids above are the towers' tokens of images

# The bounds that a draw of weights must reach, so that a golden tells right from wrong.
SMALLEST_MARGIN = 0.015
FEWEST_DISTINCT_TOKENS = 3  # of a case's answer
LARGEST_ROUNDING = 1e-4  # how far float32's log-probabilities are from float64's

WEIGHT_SPREAD = 0.25
NORM_SPREAD = 0.15
TIED_EMBEDDING_SPREAD = 0.025  # else a tied model only repeats its last token
TIED_LAST_NORM = 10  # and with that its logits are not flat


def model_class(config):
    return getattr(transformers, config.architectures[0])


def text_model(model):
    return getattr(model.model, "language_model", model.model)


def draw_weights(model, generator):
    """Draws every weight anew, so that no bias, norm or scalar is at the value that does nothing."""

    def spread(tensor, width):
        return width * torch.randn(tensor.shape, generator=generator)

    tied = model.config.tie_word_embeddings
    is_unscaled = model.config.get_text_config().model_type == "gemma4_text"
    embedding, last_norm = model.get_input_embeddings().weight, text_model(model).norm.weight
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith("layer_scalar"):
            tensor.data = 1 + spread(tensor, NORM_SPREAD)
        elif name.endswith("norm.weight"):
            beside = 1 - tensor.data.mean()  # what the family adds to a norm's weights
            factor = TIED_LAST_NORM if tied and tensor is last_norm else 1
            if is_unscaled and name.endswith("q_norm.weight"):
                factor = tensor.numel() ** -0.5  # nothing else makes Gemma 4's scores as small as others' are
            tensor.data = factor * (1 + spread(tensor, NORM_SPREAD)) - beside
        elif name.endswith((".weight", ".bias", ".experts.gate_up_proj", ".experts.down_proj")):
            tensor.data = spread(tensor, TIED_EMBEDDING_SPREAD if tied and tensor is embedding else WEIGHT_SPREAD)


def use_long_factors(model):
    """Makes longrope take its long factors for prompts of any length."""
    rope = model.model.rotary_emb
    original = model.config.rope_parameters["original_max_position_embeddings"]
    long_frequencies, _ = ROPE_INIT_FUNCTIONS["longrope"](model.config, seq_len=original + 1)
    rope.original_inv_freq.copy_(long_frequencies)


def log_softmax(model, ids):
    return torch.log_softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double(), -1)


def golden_case(model, prompt_ids):
    ids = list(prompt_ids)
    case = {"prompt_ids": prompt_ids, "greedy_ids": [], "top5_logprobs": [], "top1_margin": []}
    for _ in range(NUM_STEPS):
        value, index = log_softmax(model, ids)[-1].topk(NUM_LISTED)
        case["greedy_ids"].append(int(index[0]))
        case["top1_margin"].append(round(float(value[0] - value[1]), 5))
        case["top5_logprobs"].append([[int(i), round(float(v), 5)] for i, v in zip(index, value)])
        ids.append(int(index[0]))
    rows = log_softmax(model, prompt_ids)
    case["prompt_logprobs"] = [None] + [round(float(row[token]), 5) for row, token in zip(rows, prompt_ids[1:])]
    return case


def prompts(largest):
    rng = random.Random(1)
    drawn = [[rng.randint(FIRST_PROMPT_ID, LAST_PROMPT_ID) for _ in range(length)] for length in PROMPT_LENGTHS]
    return [prompt for prompt in drawn if len(prompt) + NUM_STEPS <= largest]


def tells_right_from_wrong(case):
    return min(case["top1_margin"]) >= SMALLEST_MARGIN and len(set(case["greedy_ids"])) >= FEWEST_DISTINCT_TOKENS


def rounding_of(model, cases):
    """Returns the largest difference of a case's log-probabilities in float32 and in float64."""
    fed = [case["prompt_ids"] + case["greedy_ids"] for case in cases]
    narrow = [log_softmax(model, ids) for ids in fed]
    wide = [log_softmax(model.double(), ids) for ids in fed]
    model.float()
    likely = [rows > -8 for rows in wide]
    return max(float((a - b).abs()[mask].max()) for a, b, mask in zip(narrow, wide, likely))


def golden_cases(model, largest, is_wanted):
    """Returns the cases of prompts that end, answered, within `largest` tokens, or nothing where one of them is not wanted."""
    cases = []
    for prompt in prompts(largest):
        cases.append(golden_case(model, prompt))
        if not is_wanted(cases[-1]):
            return []
    return cases


def goldens_of(model, is_wanted=lambda case: True):
    """Returns by file name what a golden file is to say and its cases."""
    config = model.config.get_text_config()
    if config.rope_parameters.get("rope_type") != "longrope":
        return {"golden.json": ("", golden_cases(model, config.max_position_embeddings, is_wanted))}
    short = golden_cases(model, config.rope_parameters["original_max_position_embeddings"], is_wanted)
    use_long_factors(model)
    long = golden_cases(model, config.max_position_embeddings, is_wanted)
    return {
        "golden_short.json": (", short factors of longrope", short),
        "golden.json": (", long factors of longrope at all positions", long),
    }


def open_model(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    return model_class(config).from_pretrained(folder, dtype=torch.float32, **eager).eval()


def write_goldens(folder, goldens):
    for name, (remark, cases) in goldens.items():
        source = f"transformers {transformers.__version__}, float32 arithmetic on the bf16 weights, no KV cache{remark}"
        (folder / name).write_text(json.dumps({"source": source, "cases": cases}, separators=(",", ":")) + "\n")


def transpose_experts(path):
    """Makes experts' matrices [experts, columns, rows], as Qwen3-VL's published files have them and a new model's do not."""
    tensors = safetensors.torch.load_file(path)
    for name in tensors:
        if ".experts." in name:
            tensors[name] = tensors[name].transpose(1, 2).contiguous()
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})


def save_draw(folder, draw):
    """Writes the weights of one draw and leaves config.json as it is."""
    config_text = (folder / "config.json").read_text()
    config = transformers.AutoConfig.from_pretrained(folder)
    model = model_class(config)(config)
    draw_weights(model, torch.Generator().manual_seed(zlib.crc32(f"{folder.name} {draw}".encode())))
    model.to(torch.bfloat16).save_pretrained(folder)
    if config.model_type == "qwen3_vl_moe":
        transpose_experts(folder / "model.safetensors")
    (folder / "config.json").write_text(config_text)
    (folder / "generation_config.json").unlink(missing_ok=True)


@torch.no_grad()
def make(folder):
    for draw in itertools.count():
        save_draw(folder, draw)
        model = open_model(folder)
        goldens = goldens_of(model, tells_right_from_wrong)
        rounding = [rounding_of(model, cases) for _, cases in goldens.values() if cases]
        if len(rounding) == len(goldens) and max(rounding) <= LARGEST_ROUNDING:
            break
    write_goldens(folder, goldens)
    print(f"{folder.name}: draw {draw}, float64 differs by {max(rounding):.1e}", flush=True)


def main():
    transformers.utils.logging.disable_progress_bar()
    for name in sys.argv[1:]:
        make(DATA / name)


if __name__ == "__main__":
    main()
