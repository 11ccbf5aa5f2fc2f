#!/usr/bin/env python3
"""Fills in what transformers reads of the checkpoints in checkpoints.json.

Needs: pip install transformers==5.24.0. The file lists config files and GGUF keys of published checkpoints, without weights. Those that
are not refused get their "expected": the values that AutoConfig and GenerationConfig come to, of a model with images its text's.
"""

import json
import pathlib
import tempfile

from transformers import AutoConfig, GenerationConfig

FOLDER = pathlib.Path(__file__).parent
FIELDS = ("name", "config", "generation_config", "expected", "refused", "gguf", "gguf_refused")
SAME_NAMES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
    "rms_norm_eps",
    "tie_word_embeddings",
    "rope_parameters",
)


def experts_of(config):
    """The sizes of a mixture of experts, or None."""
    count = getattr(config, "num_experts", None) or getattr(config, "num_local_experts", None)
    if not count:
        return None
    width = getattr(config, "moe_intermediate_size", None) or config.intermediate_size
    return {"num_experts": count, "num_chosen": config.num_experts_per_tok, "intermediate_size": width}


def windows_of(config):
    types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if types is None:
        return [window or 0] * config.num_hidden_layers
    return [window if layer == "sliding_attention" else 0 for layer in types]


def as_list(ids):
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


def read(checkpoint):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "config.json").write_text(json.dumps(checkpoint["config"]))
        whole = AutoConfig.from_pretrained(folder)
        config = whole.get_text_config()
        ends, bos = getattr(whole, "eos_token_id", None) or config.eos_token_id, config.bos_token_id
        if "generation_config" in checkpoint:
            (root / "generation_config.json").write_text(json.dumps(checkpoint["generation_config"]))
            generation = GenerationConfig.from_pretrained(folder)
            ends, bos = generation.eos_token_id, generation.bos_token_id
    expected = {name: getattr(config, name) for name in SAME_NAMES}
    expected["tie_word_embeddings"] = whole.tie_word_embeddings
    expected["head_dim"] = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    expected["layer_windows"] = windows_of(config)
    if experts := experts_of(config):
        expected["experts"] = experts
    expected["eos_token_ids"] = as_list(ends)
    expected["bos_token_id"] = bos
    return expected


def write(table, checkpoints):
    texts = []
    for checkpoint in checkpoints:
        lines = [f"  {json.dumps(field)}: {json.dumps(checkpoint[field])}" for field in FIELDS if field in checkpoint]
        texts.append(" {\n" + ",\n".join(lines) + "\n }")
    table.write_text("[\n" + ",\n".join(texts) + "\n]\n")


def main():
    table = FOLDER / "checkpoints.json"
    checkpoints = json.loads(table.read_text())
    for checkpoint in checkpoints:
        if "refused" not in checkpoint:
            checkpoint["expected"] = read(checkpoint)
    write(table, checkpoints)


if __name__ == "__main__":
    main()
