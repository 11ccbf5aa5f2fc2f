"""Makes llama_cpp.json: the ids that llama.cpp itself gives to texts, for vocabularies made up here.

  pip install llama-cpp-python==0.3.36 gguf tokenizers
  python make_llama_cpp_goldens.py

Names that llama.cpp knows by approximation alone have their goldens in pre_tokenizers.json, by the original expressions.
"""

import json
import os
import random
import tempfile

import gguf
import llama_cpp
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
NAMES = ["default", "dbrx", "stablelm2", "deepseek-v3", "glm4", "minicpm5", "spark2_5", "jais-2", "exaone-moe", "chameleon",
         "granite-embed-multi-97m", "bailingmoe", "seed-coder", "ufakzeka", "laguna", "bloom", "viking"]
TEXTS = [
    "", " ", "\n", "\t\n  \n\n  x", "Hello, world!", "I'm you'LL we'Ve 'tis don’t Ankara'nın", "1 12 123 1234 12345678 3.14159",
    "x1y22z333 a1", "½ 1½ ² Ⅻ ٣٤", "生活是漢字。かなカナ、안녕하세요 ㄅㄆ", "naïve É e\u0301 ﬁ Straße", "हिन्दी ไทย مرحبا привет",
    "🙂 👩‍👩‍👧 👋🏽", "foo() {\n    return a_b <= c // d;\n}\n", "https://a.b/c?d=e&f=%20", "a" + " " * 37 + "b", "end  ",
    "\r\n\r\nx\r\n", "!!\n\n?!\n/\n x", "# Title\n\n* $x+1$ = `y`~|", "“q” … — \u00a0\u3000\u200b.", "IMGIMGABZ<sentinel:12>  ok",
    "a b  c\u0301 d", "HTTP THE OF",
]
LETTERS = "abcdehilnorst"


def write_gguf(path, vocabulary, name=None):
    writer = gguf.GGUFWriter(path, "llama")
    if name:
        writer.add_name(name)
    writer.add_tokenizer_model(vocabulary["model"])
    if "pre" in vocabulary:
        writer.add_tokenizer_pre(vocabulary["pre"])
    writer.add_token_list([token for _, token, _ in vocabulary["tokens"]])
    writer.add_token_types([kind for _, _, kind in vocabulary["tokens"]])
    if "scores" in vocabulary:
        writer.add_token_scores(vocabulary["scores"])
    if "merges" in vocabulary:
        writer.add_token_merges(vocabulary["merges"])
    for key, write in (("bos", writer.add_bos_token_id), ("eos", writer.add_eos_token_id), ("unk", writer.add_unk_token_id)):
        if key in vocabulary:
            write(vocabulary[key])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def tokenize(vocabulary, texts, name=None):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "vocabulary.gguf")
        write_gguf(path, vocabulary, name)
        model = llama_cpp.Llama(model_path=path, vocab_only=True, verbose=False)
        return [model.tokenize(text.encode(), add_bos=False, special=True) for text in texts]


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)["vocabulary"]


def pre_tokenizers_ids():
    vocabulary = read("pre_tokenizers.json")
    return {name: tokenize({**vocabulary, "pre": name}, TEXTS) for name in NAMES}


def gemma4():
    """Merges over characters, none of which goes across a line's end, as in Gemma's vocabulary."""
    rng = random.Random(2)
    words = ["".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 6))) for _ in range(60)]
    words += [word for text in TEXTS[:12] for word in text.split()]  # of the others, many characters become bytes
    gaps = [" ", " ", "  ", "\n", "\n\n", "\n\n\n", "   "]
    corpus = ["".join(rng.choice(words) + rng.choice(gaps) for _ in range(12)) for _ in range(400)]
    trained = Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.pre_tokenizer = pre_tokenizers.Split(Regex(r"[^\n]+|[\n]+"), "isolated")
    trained.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=450, max_token_length=8, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    tokens = [["<pad>", CONTROL], ["<eos>", CONTROL], ["<bos>", CONTROL], ["<unk>", UNKNOWN], ["<|turn>", CONTROL],
              ["<turn|>", CONTROL], ["<|tool_call>", USER_DEFINED], *([f"<0x{byte:02X}>", BYTE] for byte in range(256)),
              *([token, NORMAL] for token, _ in sorted(model["vocab"].items(), key=lambda entry: entry[1]))]
    vocabulary = {"model": "gemma4", "num_tokens": len(tokens), "bos": 2, "eos": 1, "unk": 3,
                  "tokens": [[i, *token] for i, token in enumerate(tokens)],
                  "merges": [" ".join(merge) for merge in model["merges"]]}
    texts = [*TEXTS, "\n\n\n\n\n\n\n", "the\n\n  end\n", " lone", "<|turn>user\nHello <turn|>\n<|tool_call>x", "▁ is a space"]
    ids = tokenize(vocabulary, texts)

    reference = Tokenizer(models.BPE(vocab={token: i for i, token, _ in vocabulary["tokens"]},
                                     merges=[tuple(merge) for merge in model["merges"]],
                                     unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    reference.normalizer = normalizers.Replace(" ", "▁")
    reference.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    reference.add_special_tokens([token for token, kind in tokens if kind in (CONTROL, UNKNOWN)])
    reference.add_tokens([token for token, kind in tokens if kind == USER_DEFINED])
    assert ids == [reference.encode(text).ids for text in texts], "Hugging Face and llama.cpp disagree"
    decoded = [reference.decode(each, skip_special_tokens=False) for each in ids]
    return {"vocabulary": vocabulary, "texts": texts, "ids": ids, "decoded": decoded}


def phi3():
    """sentence_piece.json's vocabulary with the special tokens of Phi-3 behind it."""
    vocabulary = read("sentence_piece.json")
    special = ["<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>"]
    added = [[vocabulary["num_tokens"] + i, token, CONTROL] for i, token in enumerate(special)]
    whole = {**vocabulary, "tokens": vocabulary["tokens"] + added, "scores": vocabulary["scores"] + [0.0] * len(added)}
    texts = ["<|user|>\nHello<|end|>\n<|assistant|>\n", "<|system|>\n\n  the of<|end|> \t\n<|user|>  a\n<|end|>\nx",
             "<|endoftext|>\n the<|endoftext|>  x", "<s> a</s>\n b<unk>\nc", "the\n<|user|>\n", " <|end|><|end|> "]
    return {"added": added, "texts": texts,
            "ids": {name: tokenize(whole, texts, name) for name in ("Phi-3-mini", "my PHI3 tune", "Phi-4")}}


def main():
    goldens = {"texts": TEXTS, "ids": pre_tokenizers_ids(), "gemma4": gemma4(), "phi3": phi3()}
    with open(os.path.join(HERE, "llama_cpp.json"), "w", encoding="utf-8") as file:
        json.dump(goldens, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
