#!/usr/bin/env python3
"""Writes a GGUF checkpoint of a real one's shape with random BF16 weights, to be timed and never to be read.

  bench/random_checkpoint.py OUT.gguf [--shape qwen3-0.6b|gemma3-1b] [--seed N]

Weights are normal with a deviation of 0.02 and norms are 1, so that every value on the way stays finite and small. The
vocabulary is whole and valid, a byte-level BPE whose tokens beyond the 256 bytes are fillers. Needs numpy.
"""

import argparse
import pathlib
import struct
from typing import NamedTuple

import numpy

ALIGNMENT = 32
GGUF_F32, GGUF_BF16 = 0, 30  # tensor types
UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5  # value types
NORMAL_TOKEN, CONTROL_TOKEN = 1, 3
DEVIATION = 0.02
ELEMENTS_AT_ONCE = 1 << 24  # bounds the memory that writing takes


class ModelShape(NamedTuple):
    architecture: str = "qwen3"
    hidden: int = 1024
    layers: int = 28
    heads: int = 16
    kv_heads: int = 8
    head_dim: int = 128
    intermediate: int = 3072
    vocab: int = 151936
    context: int = 40960
    delta_norms: tuple[str, ...] = ()  # of what a block adds
    window: int = 0  # of five layers of six


SHAPES = {
    "qwen3-0.6b": ModelShape(),
    "gemma3-1b": ModelShape(
        "gemma3", 1152, 26, 4, 1, 256, 6912, 262144, 32768, ("post_attention_norm", "post_ffw_norm"), 512
    ),
}


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]  # the innermost extent last

    @property
    def is_norm(self):
        return len(self.shape) == 1

    @property
    def num_bytes(self):
        return numpy.prod(self.shape, dtype=int) * (4 if self.is_norm else 2)


def tensors_of(shape):
    """Every tensor, in the order of a step. The output projection is the embedding."""
    q_dim, kv_dim = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    yield Tensor("token_embd.weight", (shape.vocab, shape.hidden))
    for layer in range(shape.layers):
        for name, extents in (
            ("attn_norm", (shape.hidden,)),
            ("attn_q", (q_dim, shape.hidden)),
            ("attn_k", (kv_dim, shape.hidden)),
            ("attn_v", (kv_dim, shape.hidden)),
            ("attn_q_norm", (shape.head_dim,)),
            ("attn_k_norm", (shape.head_dim,)),
            ("attn_output", (shape.hidden, q_dim)),
            ("ffn_norm", (shape.hidden,)),
            ("ffn_gate", (shape.intermediate, shape.hidden)),
            ("ffn_up", (shape.intermediate, shape.hidden)),
            ("ffn_down", (shape.hidden, shape.intermediate)),
            *((name, (shape.hidden,)) for name in shape.delta_norms),
        ):
            yield Tensor(f"blk.{layer}.{name}.weight", extents)
    yield Tensor("output_norm.weight", (shape.hidden,))


def byte_characters():
    """The 256 characters by which byte-level vocabularies spell bytes (GPT-2's mapping)."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    spelled = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    return [spelled[byte] for byte in range(256)]


def vocabulary_of(size):
    """Tokens, their types and the merges."""
    tokens = byte_characters()
    merged = [(a, b) for a in "Ġaeiotn" for b in "aeiotnrsdl"][: max(0, size - 257)]
    tokens += [a + b for a, b in merged]
    tokens += [f"[filler {number}]" for number in range(len(tokens), size - 1)]
    tokens.append("<|endoftext|>")
    types = [NORMAL_TOKEN] * (size - 1) + [CONTROL_TOKEN]
    return tokens, types, [f"{a} {b}" for a, b in merged]


def packed_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def packed_array(value_type, values):
    if value_type == STRING:
        body = b"".join(map(packed_string, values))
    else:
        body = struct.pack(f"<{len(values)}i", *values)
    return struct.pack("<IIQ", ARRAY, value_type, len(values)) + body


def packed_value(value):
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    return struct.pack("<I", STRING) + packed_string(value)


def metadata_of(shape):
    """Keys and their packed values."""
    tokens, types, merges = vocabulary_of(shape.vocab)
    own = {
        "block_count": shape.layers,
        "context_length": shape.context,
        "embedding_length": shape.hidden,
        "feed_forward_length": shape.intermediate,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads,
        "attention.key_length": shape.head_dim,
        "attention.value_length": shape.head_dim,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e6,
    }
    if shape.window:
        own["attention.sliding_window"] = shape.window
    plain = {
        "general.architecture": shape.architecture,
        "general.name": f"random weights of a {shape.architecture}",
        **{f"{shape.architecture}.{key}": value for key, value in own.items()},
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.eos_token_id": shape.vocab - 1,
        "tokenizer.ggml.bos_token_id": shape.vocab - 1,
        "tokenizer.ggml.add_bos_token": False,
    }
    packed = {key: packed_value(value) for key, value in plain.items()}
    packed["tokenizer.ggml.tokens"] = packed_array(STRING, tokens)
    packed["tokenizer.ggml.token_type"] = packed_array(INT32, types)
    packed["tokenizer.ggml.merges"] = packed_array(STRING, merges)
    return packed


def rounded_to_bf16(values):
    """The upper halves of float32 bits, to the nearest even."""
    bits = values.view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)


def write_values(file, tensor, random):
    if tensor.is_norm:
        file.write(numpy.ones(tensor.shape, numpy.float32).tobytes())
        return
    left = tensor.num_bytes // 2
    while left > 0:
        count = min(left, ELEMENTS_AT_ONCE)
        file.write(rounded_to_bf16(random.standard_normal(count, numpy.float32) * numpy.float32(DEVIATION)).tobytes())
        left -= count


def padding(offset):
    return -offset % ALIGNMENT


def write_checkpoint(path, shape=ModelShape(), seed=0):
    """Whole or not at all: the file gets its name when it is complete."""
    path = pathlib.Path(path)
    tensors = list(tensors_of(shape))
    metadata = metadata_of(shape)
    random = numpy.random.default_rng(seed)
    partial = path.with_suffix(".partial")
    with open(partial, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, value in metadata.items():
            file.write(packed_string(key) + value)
        offset = 0
        for tensor in tensors:
            extents = tensor.shape[::-1]  # GGUF has the innermost first
            file.write(packed_string(tensor.name) + struct.pack(f"<I{len(extents)}Q", len(extents), *extents))
            file.write(struct.pack("<IQ", GGUF_F32 if tensor.is_norm else GGUF_BF16, offset))
            offset += tensor.num_bytes + padding(tensor.num_bytes)
        file.write(bytes(padding(file.tell())))
        for tensor in tensors:
            write_values(file, tensor, random)
            file.write(bytes(padding(tensor.num_bytes)))
    partial.rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-0.6b")
    parser.add_argument("--seed", type=int, default=0)
    flags = parser.parse_args()
    write_checkpoint(flags.out, SHAPES[flags.shape], flags.seed)


if __name__ == "__main__":
    main()
