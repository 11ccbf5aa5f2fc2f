#!/usr/bin/env python3
"""Writes tests/golden/data/scores.json: what transformers makes of some pairs of texts with the tiny checkpoints beside it, as
classifiers of one class whose head is drawn here.

Needs: pip install torch==2.15.0 transformers==5.24.0. Weights are widened to float32.
"""

import json
import pathlib
import tempfile

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

DATA = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "data"
TARGET = DATA / "scores.json"
MODELS = ["tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"]
QUERY = "Where does the river run?"
DOCUMENTS = ["Under the stone bridge.", "a", "The mill is closed. " * 12]


@torch.no_grad()
def golden(name, seed):
    with tempfile.TemporaryDirectory() as folder:
        for file in (DATA / name).iterdir():
            (pathlib.Path(folder) / file.name).symlink_to(file)
        config = json.loads((DATA / name / "config.json").read_text())
        config |= {"architectures": [config["architectures"][0].replace("ForCausalLM", "ForSequenceClassification")],
                   "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
        (pathlib.Path(folder) / "config.json").unlink()
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    pairs = [tokenizer(QUERY, document)["input_ids"] for document in DOCUMENTS]
    head = torch.randn(1, model.config.hidden_size, generator=torch.Generator().manual_seed(seed))
    model.score.weight.copy_(head)
    # A head whose scores tell something: its largest logit is near 2.
    head = (head * 2 / max(model(torch.tensor([ids])).logits.abs().item() for ids in pairs)).bfloat16().float()
    model.score.weight.copy_(head)
    logits = [model(torch.tensor([ids])).logits for ids in pairs]
    return {"model": name, "weights": head[0].tolist(), "token_ids": pairs,
            "scores": [round(torch.sigmoid(each).item(), 6) for each in logits]}


def main():
    goldens = [golden(name, seed) for seed, name in enumerate(MODELS)]
    TARGET.write_text(json.dumps({"query": QUERY, "documents": DOCUMENTS, "goldens": goldens}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
