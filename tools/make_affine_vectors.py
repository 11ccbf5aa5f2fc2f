#!/usr/bin/env python3
"""Writes what MLX reads from affine groups of every width, for the test of src/quant/affine.cc.

  tools/make_affine_vectors.py > src/quant/testdata/affine_vectors.txt

Needs MLX's Python package: pip install 'mlx[cpu]==0.32.4' numpy. A line is a matrix of one row:

  bits group_size scale_format codes scales biases values mlx_values

The last five are hexadecimal: bytes as a checkpoint has them, `values` as float32 that MLX computes under scales widened to
float32, and `mlx_values` as it computes in the scales' own type.
"""

import mlx.core as mx
import numpy

SEED = 20261120
FORMATS = {"F32": mx.float32, "F16": mx.float16, "BF16": mx.bfloat16}


def to_hex(array):
    """The array's bytes; NumPy knows no bfloat16, so they come as integers of the same width."""
    words = {4: mx.uint32, 2: mx.uint16}[array.itemsize]
    return numpy.array(array.view(words)).tobytes().hex()


def line(random, bits, group_size, name):
    cols = max(group_size, 64)
    # Scales and biases as MLX's quantiser makes them, codes of every value.
    weights = mx.array(random.normal(size=(1, cols)).astype(numpy.float32)).astype(FORMATS[name])
    _, scales, biases = mx.quantize(weights, group_size, bits)
    codes = mx.array(random.integers(0, 1 << 32, size=(1, cols * bits // 32), dtype=numpy.uint32))
    wide = mx.dequantize(codes, scales.astype(mx.float32), biases.astype(mx.float32), group_size, bits)
    own = mx.dequantize(codes, scales, biases, group_size, bits)
    fields = [bits, group_size, name] + [to_hex(array) for array in (codes, scales, biases, wide, own)]
    return " ".join(str(field) for field in fields)


def main():
    random = numpy.random.default_rng(SEED)
    for bits in (2, 3, 4, 5, 6, 8):
        for group_size in (32, 64, 128):
            for name in FORMATS:
                print(line(random, bits, group_size, name))


if __name__ == "__main__":
    main()
