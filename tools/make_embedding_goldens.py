#!/usr/bin/env python3
"""Writes tests/golden/data/embeddings.json: what sentence-transformers makes of some texts with the tiny checkpoints beside it.

Needs: pip install sentence-transformers==6.2.0 torch==2.15.0 transformers==5.24.0. Weights are widened to float32.
"""

import json
import pathlib

import torch
from sentence_transformers import SentenceTransformer, models
from transformers import AutoModel

DATA = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "data"
TARGET = DATA / "embeddings.json"
MODELS = ["tiny-llama", "tiny-mistral", "tiny-qwen2", "tiny-qwen3"]
# Those without a tokenizer have ids of their own: one more weight in norms with windows, and scaled logits.
MODELS_OF_IDS = ["tiny-gemma2", "tiny-granite"]
POOLINGS = ["lasttoken", "mean", "cls"]
TEXTS = ["Hello world", "a", "The river runs under the stone bridge, past the paper mill, and on to the sea. " * 3]


def numbers(vector):
    return [round(float(x), 6) for x in vector]


def golden(name, pooling, ids, vectors):
    return {"model": name, "pooling": pooling, "token_ids": ids, "embeddings": [numbers(vector) for vector in vectors]}


def embed_texts(name, pooling):
    transformer = models.Transformer(str(DATA / name), model_kwargs={"dtype": torch.float32})
    transformer.tokenizer.pad_token = transformer.tokenizer.eos_token  # it asks for one, and pads nothing
    width = transformer.get_embedding_dimension()
    model = SentenceTransformer(modules=[transformer, models.Pooling(width, pooling_mode=pooling)], device="cpu")
    # With the checkpoint's chat template around each text.
    ids = [model.preprocess([text])["input_ids"][0].tolist() for text in TEXTS]
    return golden(name, pooling, ids, [model.encode(text, normalize_embeddings=False) for text in TEXTS])


@torch.no_grad()
def embed_ids(name, pooling, ids):
    model = AutoModel.from_pretrained(str(DATA / name), dtype=torch.float32)
    pool = models.Pooling(model.config.hidden_size, pooling_mode=pooling)
    vectors = []
    for prompt in ids:
        hidden = model(torch.tensor([prompt])).last_hidden_state
        mask = torch.ones(1, len(prompt), dtype=torch.long)
        vectors.append(pool({"token_embeddings": hidden, "attention_mask": mask})["sentence_embedding"][0])
    return golden(name, pooling, ids, vectors)


def main():
    goldens = [embed_texts(name, pooling) for name in MODELS for pooling in POOLINGS]
    ids = [[token % 256 for token in prompt] for prompt in goldens[0]["token_ids"]]
    goldens += [embed_ids(name, pooling, ids) for name in MODELS_OF_IDS for pooling in POOLINGS]
    TARGET.write_text(json.dumps({"texts": TEXTS, "goldens": goldens}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
