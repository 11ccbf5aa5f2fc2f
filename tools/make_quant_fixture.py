#!/usr/bin/env python3
"""Writes what the Python package gguf makes of random blocks and values, for src/quant's tests:

  pip install gguf==0.19.0 && tools/make_quant_fixture.py

  src/quant/testdata/block_formats.txt     random blocks of GGUF's formats, decoded
  src/quant/testdata/quantised_blocks.txt  random values, quantised to the formats that the package quantises to

A line a block: the format's name, the block's bytes, its values as float32 bits; the last two in hex, as they lie in memory.
"""

import importlib.metadata
import pathlib

import gguf
import numpy as np

SEED = 20261120
# Where a block's f16 scales stand. Everything else in a block may be any bits.
SCALES_AT = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,), "MXFP4": (),
}  # fmt: skip
QUANTISED = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1")
# Normal, negative, subnormal as f16, and zero.
SCALES = (0.0123, -0.37, 3e-6, 0.0)
# Exponents of MXFP4's powers: a usual one, the two that are subnormal in float32, and the largest of a finite block.
EXPONENTS = (123, 0, 1, 252)


def random_block(rng, name, which):
    _, num_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    block = rng.integers(0, 256, num_bytes, dtype=np.uint8)
    if name == "MXFP4":
        block[0] = EXPONENTS[which % len(EXPONENTS)]
    for place in SCALES_AT[name]:
        scale = np.float16(SCALES[which % len(SCALES)] * rng.uniform(0.5, 1.5))
        block[place : place + 2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
        which += 1
    return block


def decoded_blocks(rng):
    for name in SCALES_AT:
        kind = gguf.GGMLQuantizationType[name]
        block_size, _ = gguf.GGML_QUANT_SIZES[kind]
        for which in range(4 if block_size == 32 else 2):
            block = random_block(rng, name, which)
            values = gguf.quants.dequantize(block, kind)
            assert values.dtype == np.float32 and values.size == block_size and np.isfinite(values).all()
            yield name, block, values


def quantised_blocks(rng):
    blocks = [
        rng.normal(0, 0.3, 32),
        rng.laplace(0.1, 2e-4, 32),
        np.where(rng.random(32) < 0.1, 1000 * rng.normal(0, 1, 32), rng.normal(0, 1, 32)),
        np.zeros(32),
        np.arange(32) / 4 - 3.875,  # ties between two q, and two values largest in magnitude
        rng.normal(0, 1e-7, 32),  # scales that f16 holds as subnormals
    ]
    for name in QUANTISED:
        for block in blocks:
            values = block.astype(np.float32)
            yield name, gguf.quants.quantize(values, gguf.GGMLQuantizationType[name]), values


def write(name, blocks):
    path = pathlib.Path(__file__).parent.parent / "src/quant/testdata" / name
    lines = [f"# gguf {importlib.metadata.version('gguf')}, by tools/make_quant_fixture.py, seed {SEED}"]
    lines += [f"{name} {block.tobytes().hex()} {values.tobytes().hex()}" for name, block, values in blocks]
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(lines) - 1} blocks, {path.stat().st_size} bytes")


def main():
    write("block_formats.txt", decoded_blocks(np.random.default_rng(SEED)))
    write("quantised_blocks.txt", quantised_blocks(np.random.default_rng(SEED)))


if __name__ == "__main__":
    main()
