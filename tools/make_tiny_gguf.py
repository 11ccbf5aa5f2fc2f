#!/usr/bin/env python3
"""Makes GGUF twins of tiny checkpoints with llama.cpp's own converter, and their golden outputs with transformers.

Needs what make_tiny_models.py needs, gguf's packages (numpy, pyyaml, sentencepiece) and llama.cpp's source, as PyPI's llama-cpp-python 0.3.36
carries it: make_tiny_gguf.py LLAMA_CPP_FOLDER NAME... writes tests/golden/data/NAME-gguf/model.gguf (matrices in bf16, the rest in float32:
nothing is rounded) and golden.json. The converter drops what llama.cpp knows by heart; where the checkpoint says something else there, the
golden outputs are those of the same weights under the file's own values.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from make_tiny_models import DATA, goldens_of, open_model, write_goldens
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

MODEL_NAME = "Tiny"  # llama.cpp expects tokens by the names of some models
NUM_TOKENS = 288
SPECIAL_TOKENS = ["<|bos|>", "<|eos|>", "<|endoftext|>", "<|user|>"]

# The options that the files do not carry: a scale other than that of the head's width, windows of SmolLM3.
KNOWN_BY_HEART = {
    "gemma2": {"query_pre_attn_scalar": 16},
    "gemma3_text": {"query_pre_attn_scalar": 16},
    "laguna": {"layer_types": ["full_attention", *["sliding_attention"] * 3]},
    "olmoe": {"rms_norm_eps": 1e-5},
    "smollm3": {"use_sliding_window": False, "layer_types": None},
}


def save_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=NUM_TOKENS, special_tokens=SPECIAL_TOKENS, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([__doc__] * 4, trainer)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=SPECIAL_TOKENS[0], eos_token=SPECIAL_TOKENS[1])
    fast.save_pretrained(folder)


def fill_vocabulary(folder, vocab_size):
    """Adds tokens that no text has. The converter cuts off rows of Gemma 4's embeddings beyond those of the tokenizer."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    while len(vocab) + len(tokenizer["added_tokens"]) < vocab_size:
        vocab[f"<unused{len(vocab)}>"] = len(vocab)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def convert(source, target):
    from conversion import ModelBase, get_model_class
    from conversion.base import TextModel
    from gguf import LlamaFileType

    architecture = ModelBase.load_hparams(source, False)["architectures"][0]
    converter = get_model_class(architecture)
    # The converter knows published tokenizers alone by their digests, and asks the Gemmas for SentencePiece's.
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    if architecture != "Glm4ForCausalLM":
        converter.set_vocab = lambda self: self._set_vocab_gpt2()
    with torch.inference_mode():
        converter(source, LlamaFileType.MOSTLY_BF16, target, model_name=MODEL_NAME).write()


@torch.no_grad()
def make(name):
    target = DATA / f"{name}-gguf"
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / name
        shutil.copytree(DATA / name, source)
        config = json.loads((source / "config.json").read_text())
        config |= KNOWN_BY_HEART.get(config["model_type"], {})
        (source / "config.json").write_text(json.dumps(config))
        save_tokenizer(source)
        if config["model_type"] == "gemma4_text":
            fill_vocabulary(source, config["vocab_size"])
        convert(source, target / "model.gguf")
        write_goldens(target, goldens_of(open_model(source)))


def main():
    sys.path[:0] = [sys.argv[1], f"{sys.argv[1]}/gguf-py"]
    for name in sys.argv[2:]:
        make(name)


if __name__ == "__main__":
    main()
