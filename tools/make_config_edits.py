#!/usr/bin/env python3
"""Writes tests/golden/data/config_edits.json: what transformers answers when a key of a tiny checkpoint's config.json is changed.

Needs: pip install torch==2.15.0 transformers==5.24.0 safetensors. Usage: make_config_edits.py [NAME...], where tests/golden/data/NAME holds
a config.json; all of them without names. Each key is taken out, nulled and changed; each key that a row of src/model/hf/hf_keys.cc is about,
or that a class of these families reads, is added. An edit's answer is the log-probabilities of the last tokens of a prompt, by float32
arithmetic on the bf16 weights without a cache; an edit that transformers refuses, or that leaves it without weights, has none.
"""

import copy
import dataclasses
import json
import os
import pathlib
import random
import re
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file
from transformers.configuration_utils import PreTrainedConfig

ROOT = pathlib.Path(__file__).parent.parent
DATA = ROOT / "tests" / "golden" / "data"
TABLE = DATA / "config_edits.json"
ABSENT = "(absent)"  # stands for a key that is taken out
NUM_LISTED = 4
NUM_DIGITS = 4
PROMPT = random.Random(1).sample(range(4, 280), 40)  # longer than every window, shorter than LongRoPE's original positions
SAME_WITHIN = 1e-5

# The text tower is edited; the other towers and how tensors are quantised are not.
UNTOUCHED = {"vision_config", "audio_config", "quantization", "quantization_config"}

LINEAR = {"rope_type": "linear", "factor": 3.0}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
ROPE_BLOCKS = [
    {},
    {"rope_theta": 700.0},
    LINEAR,
    {"type": "linear", "factor": 3.0},
    {"rope_type": "dynamic", "factor": 2.0},
    LLAMA3,
    YARN,
    {**YARN, "truncate": False},
    {**YARN, "rope_theta": 700.0, "beta_fast": 4.0, "beta_slow": 2.0, "mscale": 1.0, "mscale_all_dim": 0.5},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "proportional", "partial_rotary_factor": 0.5},
    {"rope_type": "default", "partial_rotary_factor": 0.5},
    {"rope_type": "su", "factor": 2.0},
]
NESTED_BLOCKS = [
    {"full_attention": {"rope_type": "default", "rope_theta": 700.0}},
    {"sliding_attention": {"rope_type": "default", "rope_theta": 700.0}},
    {"full_attention": LINEAR, "sliding_attention": {"rope_type": "default"}},
    {"full_attention": {**YARN, "truncate": False}, "sliding_attention": LINEAR},
    {"full_attention": {"rope_type": "default"}, "sliding_attention": {"rope_type": "default"}, "rope_theta": 700.0},
    {"full_attention": None, "sliding_attention": {"rope_type": "default"}},
    {"full_attention": {"rope_type": "dynamic", "factor": 2.0}, "sliding_attention": {"rope_type": "default"}},
]

# What a key is set to, where the kind of its value does not say enough.
VALUES = {
    "architectures": [],  # a class is opened by name: src/model/hf/hf_keys_test.cc has these
    "auto_map": [],  # nothing runs a checkpoint's code
    "model_type": [],
    "quantization": [],
    "quantization_config": [],
    "text_config": [],
    "attention_bias": [False, True],
    "attention_multiplier": [0.5],
    "attn_logit_softcapping": [0, 2.0],
    "clip_qkv": [0.5],
    "final_logit_softcapping": [0, 2.0],
    "full_attn_mod": [1, 2],
    "global_head_dim": [8, 16, 32],
    "head_dim": [8, 16, 32],
    "hidden_act": ["silu", "swish", "gelu", "gelu_pytorch_tanh", "relu"],
    "hidden_activation": ["silu", "gelu", "gelu_pytorch_tanh"],
    "hidden_size_per_layer_input": [0, 8],
    "is_causal": [True, False],
    "layer_types": [["full_attention"], ["sliding_attention"], ["full_attention", "sliding_attention"], ["chunked_attention"]],
    "llama_4_scaling_beta": [0.5],
    "logit_scale": [1, 0.5],
    "max_position_embeddings": [512, 1024, 4096],
    "max_window_layers": [0, 1, 100],
    "no_rope_layers": [[0], [1], [1, 0]],
    "no_rope_layer_interval": [1, 2],
    "num_attention_heads": [2, 4],
    "num_hidden_layers": [1, 2],
    "num_key_value_heads": [1, 2],
    "original_max_position_embeddings": [16, 2048],
    "partial_rotary_factor": [0.5, 1.0],
    "per_layer_config": [
        {},
        {"0": {"head_dim": 8}},
        {"1": {"head_dim": 32}},
        {"1": {"num_key_value_heads": 2}},
        {"0": {"sliding_window": 8}},
        {"0": {"skip": ["mlp"]}},
    ],
    "pruned_heads": [{}, {"0": [1]}],
    "query_pre_attn_scalar": [8, 64],
    "rms_norm_eps": [1e-2, 1e-6],
    "rope_local_base_freq": [700.0],
    "rope_parameters": ROPE_BLOCKS + NESTED_BLOCKS,
    "rope_scaling": ROPE_BLOCKS + NESTED_BLOCKS,
    "rope_theta": [700.0, 10000],
    "sliding_window": [0, 8, 4096],
    "sliding_window_pattern": [1, 2],
    "_sliding_window_pattern": [1, 2],
    "use_bidirectional_attention": [False, True, "vision", "all"],
    "vocab_size_per_layer_input": [288, 300],
}
ROPE_VALUES = {
    "attention_factor": [1.0, 1.5],
    "beta_fast": [4.0],
    "beta_slow": [3.0],
    "factor": [1.0, 3.0],
    "finetuned": [True, False],
    "full_attention": [{"rope_type": "default", "rope_theta": 700.0}],
    "high_freq_factor": [8.0],
    "llama_4_scaling_beta": [0.0, 0.5],
    "long_factor": [[2.0] * 8],
    "low_freq_factor": [2.0],
    "max_position_embeddings": [64],
    "mrope_interleaved": [True, False],
    "mrope_section": [[4, 2, 2]],
    "mscale": [1.0, 2.0],
    "mscale_all_dim": [1.0, 2.0],
    "original_max_position_embeddings": [8, 2048],
    "partial_rotary_factor": [0.5, 1.0],
    "rope_theta": [700.0],
    "rope_type": ["default", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"],
    "short_factor": [[2.0] * 8],
    "truncate": [True, False],
    "type": ["default", "linear", "su", "yarn"],
}


def text_classes():
    names = ("Llama", "Mistral", "Ministral3", "Qwen2", "Qwen3", "Gemma2", "Glm4", "Granite", "Olmo2", "Olmo3", "Phi3", "SmolLM3",
             "Mixtral", "Qwen2Moe", "Qwen3Moe", "Olmoe", "GraniteMoe", "GraniteMoeShared", "Glm4Moe", "Ernie4_5_Moe")
    return [getattr(transformers, f"{name}Config") for name in names] + [
        transformers.Gemma3TextConfig,
        transformers.Gemma4TextConfig,
        transformers.models.qwen3_vl.Qwen3VLTextConfig,
        transformers.models.qwen3_vl_moe.Qwen3VLMoeTextConfig,
    ]


def changed_values(value):
    """Returns other values of the same kind."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [2 * value]
    if isinstance(value, float):
        return [value * 2]
    if isinstance(value, str):
        return ["no such value"]
    if isinstance(value, list):
        return [value[::-1], value[:-1]]
    return []


def added_keys():
    """Returns the values to add by key, of every key that some family's class or a row of the engine's table is about."""
    rows = re.findall(r'^ +\{"([^"]+)", HfRule::', (ROOT / "src/model/hf/hf_keys.cc").read_text(), re.M)
    keys = {key.replace("*", "x"): [True, 2] for key in rows}
    for config in text_classes():
        for field in dataclasses.fields(config):
            default = None if field.default is dataclasses.MISSING else field.default
            keys[field.name] = changed_values(default) or [True, 2]
    keys.update(VALUES)
    return {key: values for key, values in sorted(keys.items()) if values and key not in UNTOUCHED}


def with_edit(config, pointer, value):
    edited = copy.deepcopy(config)
    *parents, key = pointer.strip("/").split("/")
    place = edited
    for parent in parents:
        place = place[parent]
    if value == ABSENT:
        del place[key]
    else:
        place[key] = value
    return edited


def edits_of(place, pointer, in_rope):
    """Returns the edits of the keys that an object has, and of the keys that it could have in a block of a rotation."""
    edits = []
    values = ROPE_VALUES if in_rope else VALUES
    for key, value in place.items():
        if key in UNTOUCHED or values.get(key) == []:
            continue
        where = f"{pointer}/{key}"
        is_block = isinstance(value, dict) and key != "per_layer_config"
        others = values.get(key, []) + ([] if is_block else changed_values(value))
        edits += [(where, other) for other in [ABSENT, None, *others] if other != value]
        if is_block:
            edits += edits_of(value, where, True)
    if in_rope:
        edits += [(f"{pointer}/{key}", value) for key in ROPE_VALUES if key not in place for value in ROPE_VALUES[key]]
    return edits


def text_of(config):
    return ("/text_config", config["text_config"]) if "text_config" in config else ("", config)


def own_edits(config):
    pointer, text = text_of(config)
    edits = edits_of(text, pointer, False)
    if pointer:
        beside = {key: value for key, value in config.items() if key != "text_config"}
        edits += edits_of(beside, "", False)
        edits += [(f"/{key}", value) for key in ("tie_word_embeddings", "eos_token_id") if key not in beside for value in (True, False, 5)]
    return edits


def added_edits(config, added):
    pointer, text = text_of(config)
    return [(f"{pointer}/{key}", value) for key, values in added.items() if key not in text for value in values]


class Reads:
    """Which attributes of configs a model reads while it is built and computes."""

    def __init__(self):
        self.names = set()

    def __enter__(self):
        self.original = PreTrainedConfig.__getattribute__

        def recording(config, name):
            self.names.add(name)
            return self.original(config, name)

        PreTrainedConfig.__getattribute__ = recording
        return self

    def __exit__(self, *_):
        PreTrainedConfig.__getattribute__ = self.original

    def values(self, config):
        """Returns all that the model would read of a config, and of its text's."""
        both = {id(each): vars(each) for each in (config, config.get_text_config())}
        return repr([{name: value for name, value in sorted(each.items()) if self.is_read(name)} for each in both.values()])

    def is_read(self, name):
        return name in self.names or name == "_heterogeneity_spec"


class Checkpoint:
    """A folder of tests/golden/data, of which configs are tried."""

    def __init__(self, name):
        self.config = json.loads((DATA / name / "config.json").read_text())
        self.place = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.place.name)
        os.symlink(DATA / name / "model.safetensors", self.folder / "model.safetensors")
        self.tensors = {key: tensor.float() for key, tensor in load_file(DATA / name / "model.safetensors").items()}
        # Tensors of a tower and of experts have other names in memory.
        self.tells_all = "text_config" not in self.config and not any(".experts." in name for name in self.tensors)
        with Reads() as self.reads:
            self.unedited = self.answer(self.config)
        self.read_values = self.reads.values(self.open_config(self.config))
        with torch.no_grad():
            assert is_same(self.logprobs(self.whole_model()), self.unedited)

    def open_config(self, written):
        (self.folder / "config.json").write_text(json.dumps(written))
        return transformers.AutoConfig.from_pretrained(self.folder)

    def whole_model(self):
        """Loads the folder as transformers does."""
        config = transformers.AutoConfig.from_pretrained(self.folder)
        model, info = getattr(transformers, config.architectures[0]).from_pretrained(
            self.folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
        return None if info["missing_keys"] or info["mismatched_keys"] else model

    def bare_model(self, config):
        """The same in a fraction of the time, where nothing is to be found out about the head."""
        config._attn_implementation = "eager"
        model = getattr(transformers, config.architectures[0])(config)
        missing, _ = model.load_state_dict(self.tensors, strict=False)
        model.tie_weights()
        return None if set(missing) - {"lm_head.weight"} else model

    def logprobs(self, model):
        if model is None:
            return None
        ids = torch.tensor([PROMPT])
        rows = torch.log_softmax(model.eval()(input_ids=ids, use_cache=False).logits[0].double(), -1)
        values = [float(rows[i, PROMPT[i + 1]]) for i in range(len(PROMPT) - 1 - NUM_LISTED, len(PROMPT) - 1)]
        return None if any(value != value for value in values) else values

    @torch.no_grad()
    def answer(self, written, pointer=""):
        """Returns log-probabilities, or nothing where transformers refuses the config or finds no weights for it."""
        try:
            config = self.open_config(written)
            if pointer and self.reads.values(config) == self.read_values:
                return self.unedited
            is_whole = "tie" in pointer or not self.tells_all
            return self.logprobs(self.whole_model() if is_whole else self.bare_model(config))
        except Exception:  # whatever a class raises at a value that it was not made for
            return None


def is_same(a, b):
    return max(abs(x - y) for x, y in zip(a, b)) <= SAME_WITHIN


def rounded(values):
    return [round(value, NUM_DIGITS) for value in values]


def saved_anew(checkpoint):
    """Returns the config as transformers writes it, and that of the text model without its head."""
    checkpoint.open_config(checkpoint.config)
    model = checkpoint.whole_model()
    texts = []
    for part in (model, getattr(model.base_model, "language_model", model.base_model)):
        with tempfile.TemporaryDirectory() as folder:
            part.save_pretrained(folder)
            texts.append(json.loads((pathlib.Path(folder) / "config.json").read_text()))
    return {"saved": texts[0], "saved_without_head": texts[1]}


def edits_with_answers(name, added):
    checkpoint = Checkpoint(name)
    table = {**saved_anew(checkpoint), "unedited": rounded(checkpoint.unedited), "same": [], "differs": [], "refused": [], "added_differs": [], "added_refused": []}
    for prefix, edits in (("", own_edits(checkpoint.config)), ("added_", added_edits(checkpoint.config, added))):
        for pointer, value in edits:
            values = checkpoint.answer(with_edit(checkpoint.config, pointer, value), pointer)
            if values is None:
                table[f"{prefix}refused"].append([pointer, value])
            elif not is_same(values, checkpoint.unedited):
                table[f"{prefix}differs"].append([pointer, value, rounded(values)])
            elif not prefix:
                table["same"].append([pointer, value])
    return table


def dump(tables):
    """Lays a table of a model's edits out with a line for each kind."""

    def line(value):
        return json.dumps(value, separators=(",", ":"))

    models = [
        f' "{name}": {{\n' + ",\n".join(f'  "{kind}": {line(edits)}' for kind, edits in table.items()) + "\n }"
        for name, table in sorted(tables["models"].items())
    ]
    head = [f'"{key}": {line(value)}' for key, value in tables.items() if key != "models"]
    return "{\n" + ",\n".join(head) + ',\n"models": {\n' + ",\n".join(models) + "\n}\n}\n"


def draw_nothing(model):
    """Takes the place of what draws weights anew, which loading then writes over."""


def main():
    torch.set_num_threads(1)
    torch.nn.Linear.reset_parameters = torch.nn.Embedding.reset_parameters = draw_nothing
    transformers.PreTrainedModel.init_weights = draw_nothing
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity(transformers.logging.CRITICAL)
    names = sys.argv[1:] or sorted(path.parent.name for path in DATA.glob("*/config.json") if "affine" not in path.parent.name)
    added = added_keys()
    for name in names:
        table = edits_with_answers(name, added)
        models = json.loads(TABLE.read_text())["models"] if TABLE.exists() else {}
        models[name] = table
        source = f"transformers {transformers.__version__}, float32 arithmetic on the bf16 weights, no KV cache"
        TABLE.write_text(dump({"source": source, "prompt_ids": PROMPT, "added": added, "models": models}))
        print(f"{name}: " + ", ".join(f"{len(rows)} {kind}" for kind, rows in table.items() if kind.endswith(("same", "differs", "refused"))), flush=True)


if __name__ == "__main__":
    main()
