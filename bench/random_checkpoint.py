#!/usr/bin/env python3
"""Writes a GGUF checkpoint of a real one's shape with random weights, to be timed and never to be read.

  bench/random_checkpoint.py OUT.gguf [--shape qwen3-0.6b|gemma3-1b|qwen3-30b-a3b-16|gpt-oss-20b] [--seed N]

Weights have a deviation of about 0.02 (a mixture's embedding 1) and norms are 1, so that every value on the way stays
finite. Those of dense shapes are BF16. qwen3-30b-a3b-16 has 16 of the 48 layers of Qwen3-30B-A3B in Q4_0, the head in
Q6_K, and takes 6.1 GB. gpt-oss-20b is whole, with experts in MXFP4 and other matrices in Q8_0: 12.1 GB. The vocabulary
is whole and valid, a byte-level BPE whose tokens beyond the 256 bytes are fillers. Needs numpy.
"""

import argparse
import pathlib
import struct
from typing import NamedTuple

import numpy

ALIGNMENT = 32
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
    window: int = 0  # of layers by the architecture's pattern
    experts: int = 0
    chosen_experts: int = 0
    expert_width: int = 0
    weights: str = "BF16"  # the format of all matrices but the next
    expert_weights: str = ""  # of experts' matrices; empty: as the others
    head: str = ""  # of the output projection; empty: it is the embedding
    mlp_norm: str = "ffn_norm"
    norms_heads: bool = True  # of queries and keys
    has_biases: bool = False  # of all matrices but the head
    has_sinks: bool = False
    yarn_factor: float = 0  # of a context of 4096; 0: none


SHAPES = {
    "qwen3-0.6b": ModelShape(),
    "gemma3-1b": ModelShape(
        "gemma3", 1152, 26, 4, 1, 256, 6912, 262144, 32768, ("post_attention_norm", "post_ffw_norm"), 512
    ),
    "qwen3-30b-a3b-16": ModelShape(
        "qwen3moe", 2048, 16, 32, 4, 128, 6144, experts=128, chosen_experts=8, expert_width=768, weights="Q4_0", head="Q6_K"
    ),
    "gpt-oss-20b": ModelShape(
        "gpt-oss", 2880, 24, 64, 8, 64, 2880, 201088, 131072, window=128, experts=32, chosen_experts=4, expert_width=2880,
        weights="Q8_0", expert_weights="MXFP4", head="Q8_0", mlp_norm="post_attention_norm", norms_heads=False,
        has_biases=True, has_sinks=True, yarn_factor=32.0,
    ),
}


class Format(NamedTuple):
    gguf_type: int
    values: int  # of a block
    num_bytes: int  # of a block
    scale_at: int = 0  # where the block's float16 scale is
    scale: float = 0  # with random codes, values deviate by DEVIATION


FORMATS = {
    "F32": Format(0, 1, 4),
    "BF16": Format(30, 1, 2),
    "Q4_0": Format(2, 32, 18, 0, 0.0046),
    "Q8_0": Format(8, 32, 34, 0, 0.00027),
    "Q6_K": Format(14, 256, 210, 208, 0.000015),
    "MXFP4": Format(39, 32, 17),
}


# The exponents of MXFP4 with which random codes deviate by DEVIATION: the least, and the first beyond.
MXFP4_EXPONENTS = (119, 121)

# Bytes of two codes, of which code 0 has become 8.
CENTRED = numpy.array([(low or 8) | (high or 8) << 4 for high in range(16) for low in range(16)], numpy.uint8)


class Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]  # the innermost extent last
    format: str
    deviation: float = DEVIATION

    @property
    def num_values(self):
        return int(numpy.prod(self.shape, dtype=int))

    @property
    def num_bytes(self):
        form = FORMATS[self.format]
        return self.num_values // form.values * form.num_bytes


def mlp_of(shape):
    """The names and shapes of a layer's MLP."""
    if not shape.experts:
        yield "ffn_gate", (shape.intermediate, shape.hidden)
        yield "ffn_up", (shape.intermediate, shape.hidden)
        yield "ffn_down", (shape.hidden, shape.intermediate)
        return
    yield "ffn_gate_inp", (shape.experts, shape.hidden)
    yield "ffn_gate_exps", (shape.experts, shape.expert_width, shape.hidden)
    yield "ffn_up_exps", (shape.experts, shape.expert_width, shape.hidden)
    yield "ffn_down_exps", (shape.experts, shape.hidden, shape.expert_width)


def tensors_of(shape):
    """Every tensor, in the order of a step."""
    q_dim, kv_dim = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    # A mixture's tokens would all choose the same experts if they were small beside what layers add to them.
    deviation = 1.0 if shape.experts else DEVIATION
    yield Tensor("token_embd.weight", (shape.vocab, shape.hidden), shape.weights, deviation)
    for layer in range(shape.layers):
        for name, extents in (
            ("attn_norm", (shape.hidden,)),
            ("attn_q", (q_dim, shape.hidden)),
            ("attn_k", (kv_dim, shape.hidden)),
            ("attn_v", (kv_dim, shape.hidden)),
            *((name, (shape.head_dim,)) for name in ("attn_q_norm", "attn_k_norm") if shape.norms_heads),
            *((name, (shape.heads,)) for name in ("attn_sinks",) if shape.has_sinks),
            ("attn_output", (shape.hidden, q_dim)),
            (shape.mlp_norm, (shape.hidden,)),
            *mlp_of(shape),
            *((name, (shape.hidden,)) for name in shape.delta_norms),
        ):
            weights = shape.expert_weights if shape.expert_weights and name.endswith("_exps") else shape.weights
            is_float32 = len(extents) == 1 or name == "ffn_gate_inp"
            yield Tensor(f"blk.{layer}.{name}.weight", extents, "F32" if is_float32 else weights)
            if shape.has_biases and len(extents) > 1:
                yield Tensor(f"blk.{layer}.{name}.bias", extents[:-1], "F32", 0.0)
    yield Tensor("output_norm.weight", (shape.hidden,), "F32")
    if shape.head:
        yield Tensor("output.weight", (shape.vocab, shape.hidden), shape.head)


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
    if shape.yarn_factor:
        own["rope.scaling.type"] = "yarn"
        own["rope.scaling.factor"] = shape.yarn_factor
        own["rope.scaling.original_context_length"] = 4096
    if shape.experts:
        own["expert_count"] = shape.experts
        own["expert_used_count"] = shape.chosen_experts
        own["expert_feed_forward_length"] = shape.expert_width
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


def blocks_of(form, count, deviation, random):
    """Random codes under scales that are nearly alike. Their mean is zero: with another one tokens become alike."""
    blocks = numpy.frombuffer(random.bytes(count * form.num_bytes), numpy.uint8).reshape(count, form.num_bytes).copy()
    if form is FORMATS["Q4_0"]:  # codes of four bits minus 8, where -8 would have no counterpart
        blocks[:, 2:] = CENTRED[blocks[:, 2:]]
    if form is FORMATS["MXFP4"]:
        blocks[:, 0] = random.integers(*MXFP4_EXPONENTS, count)
        return blocks
    scales = (random.uniform(0.5, 1.5, count) * form.scale * deviation / DEVIATION).astype(numpy.float16)
    blocks[:, form.scale_at : form.scale_at + 2] = scales.view(numpy.uint8).reshape(count, 2)
    return blocks


def write_values(file, tensor, random):
    form = FORMATS[tensor.format]
    if len(tensor.shape) == 1 or tensor.deviation == 0:
        file.write(numpy.full(tensor.shape, 1 if tensor.deviation else 0, numpy.float32).tobytes())
        return
    left = tensor.num_bytes // form.num_bytes
    while left > 0:
        count = min(left, ELEMENTS_AT_ONCE // form.values)
        if form.values > 1:
            file.write(blocks_of(form, count, tensor.deviation, random).tobytes())
        else:
            values = random.standard_normal(count, numpy.float32) * numpy.float32(tensor.deviation)
            file.write((values if tensor.format == "F32" else rounded_to_bf16(values)).tobytes())
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
            file.write(struct.pack("<IQ", FORMATS[tensor.format].gguf_type, offset))
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
