#!/usr/bin/env python3
"""Makes a tiny random gpt-oss whose experts are in MXFP4, as published files have them, with golden outputs by transformers.

Needs what make_tiny_models.py needs. Usage: make_tiny_mxfp4.py NAME, where tests/golden/data/NAME holds a config.json with quant_method
mxfp4. Codes and scales are drawn, so that the golden outputs are those of exactly these values.
"""

import itertools
import json
import sys
import zlib

import torch
import transformers
from make_tiny_models import (
    DATA,
    LARGEST_ROUNDING,
    WEIGHT_SPREAD,
    draw_weights,
    goldens_of,
    model_class,
    rounding_of,
    tells_right_from_wrong,
    write_goldens,
)
from safetensors.torch import save_file

LEVELS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
EXPONENTS = (122, 125)  # the least, and the first beyond


def draw_blocks(shape, generator):
    """Returns codes [.., cols / 32, 16], scales [.., cols / 32], and the values [.., cols]."""
    *rows, cols = shape
    codes = torch.randint(0, 256, (*rows, cols // 32, 16), generator=generator, dtype=torch.uint8)
    scales = torch.randint(*EXPONENTS, (*rows, cols // 32), generator=generator, dtype=torch.uint8)
    pairs = torch.stack((codes & 15, codes >> 4), dim=-1).flatten(-2)
    return codes, scales, (LEVELS[pairs.long()] * torch.exp2(scales.float() - 127)[..., None]).flatten(-2)


def draw_model(config, generator):
    """Returns a model, and its experts' tensors as a file has them."""
    model = model_class(config)(config)
    draw_weights(model, generator)
    stored = {}
    for name, tensor in model.named_parameters():
        if name.endswith(("gate_up_proj", "down_proj")):
            codes, scales, values = draw_blocks(tensor.transpose(-1, -2).shape, generator)
            tensor.data = values.transpose(-1, -2).contiguous()
            stored |= {f"{name}_blocks": codes, f"{name}_scales": scales}
        elif name.endswith(("_bias", "sinks")):
            tensor.data = WEIGHT_SPREAD * torch.randn(tensor.shape, generator=generator)
        tensor.data = tensor.data.bfloat16().float()
    return model.eval(), stored


def save(folder, model, stored):
    tensors = {name: tensor.bfloat16() for name, tensor in model.state_dict().items() if f"{name}_blocks" not in stored}
    save_file(tensors | stored, folder / "model.safetensors", metadata={"format": "pt"})


@torch.no_grad()
def make(folder):
    keys = json.loads((folder / "config.json").read_text())
    del keys["quantization_config"]
    config = transformers.AutoConfig.for_model(**keys)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    for draw in itertools.count():
        model, stored = draw_model(config, torch.Generator().manual_seed(zlib.crc32(f"{folder.name} {draw}".encode())))
        goldens = goldens_of(model, tells_right_from_wrong)
        rounding = [rounding_of(model, cases) for _, cases in goldens.values() if cases]
        if len(rounding) == len(goldens) and max(rounding) <= LARGEST_ROUNDING:
            break
    save(folder, model, stored)
    write_goldens(folder, goldens)
    print(f"{folder.name}: draw {draw}, float64 differs by {max(rounding):.1e}", flush=True)


if __name__ == "__main__":
    make(DATA / sys.argv[1])
