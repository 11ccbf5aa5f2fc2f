"""Makes the golden files of this folder from the reference implementations: Hugging Face tokenizers and transformers,
and sentencepiece.

  pip install gguf tokenizers transformers sentencepiece jinja2
  python make_goldens.py SmolLM2-135M-Instruct.Q4_1.gguf smollm2.json

smollm2.json is the golden file of the real checkpoint: cases of kind text and chat with prompt_ids.
"""

import json
import os
import random
import sys
import tempfile

import sentencepiece
from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers.utils.chat_template_utils import render_jinja_template

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = (
    "the of capital France is Être naïve 生活是 漢字 かな 안녕 привет مرحبا हिन्दी ไทย 🙂 👩‍👩‍👧 é don't I'LL we'Ve Straße "
    "ǅ x1 123 4567 3.14159 ½ ² Ⅻ ٣٤ a_b foo() {} => <= != // /* # !! ... … — “q” ▁ Ġ ./ path/to\\file CamelCase HTTPServer "
    "https://a.b/c?d=e&f=%20 $ ^ ~ | + = e\u0301 ﬁ Ａ １ 。 ！ \u00a0 \u3000 \u200b don’t you'd"
).split(" ")
GAPS = ["", " ", " ", " ", "  ", "\n", "   ", "\n\n ", " \n", "\t", "\r\n"]


def random_words(rng):
    return "".join(rng.choice(WORDS) + rng.choice(GAPS) for _ in range(rng.randint(1, 12)))


def random_text(rng):
    if rng.random() < 0.6:
        return random_words(rng)
    ranges = [(32, 126), (9, 13), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x6FF), (0x900, 0x97F), (0x2000, 0x2100),
              (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1F6FF), (0x10400, 0x1044F)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.randint(0, 24)))


def write(name, value):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


def smollm2(gguf_path, golden_path):
    """The real vocabulary, cut down to the tokens and merges that can occur in the golden texts."""
    fields = GGUFReader(gguf_path).fields
    get = lambda key: fields["tokenizer." + key].contents()
    tokens, types, merges = get("ggml.tokens"), get("ggml.token_type"), get("ggml.merges")
    with open(golden_path, encoding="utf-8") as file:
        cases = [{k: case[k] for k in ("kind", "input", "text", "prompt_ids")} for case in json.load(file)["cases"]]
    cut = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    pieces = {piece for case in cases for piece, _ in cut.pre_tokenize_str(case["text"])}
    possible = lambda text: any(text in piece for piece in pieces)
    kept_merges = [merge for merge in merges if possible(merge.replace(" ", "", 1))]
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    needed = {part for merge in kept_merges for part in (*merge.split(" "), merge.replace(" ", "", 1))}
    kept = [[i, token, int(types[i])] for i, token in enumerate(tokens)
            if types[i] != 1 or token in alphabet or token in needed]
    write("smollm2.json", {
        "vocabulary": {"model": "gpt2", "pre": get("ggml.pre"), "num_tokens": len(tokens), "tokens": kept,
                       "merges": kept_merges},
        "chat_template": get("chat_template"),
        "cases": cases,
    })


def split(expression):
    return pre_tokenizers.Split(Regex(expression), "isolated")


def references():
    """The pre-tokenizers of the original checkpoints, by the names that GGUF files give them."""
    end = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    contraction = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    upper, lower = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
    cased = lambda after: (rf"[^\r\n\p{{L}}\p{{N}}]?[{upper}]*[{lower}]+{after}"
                           rf"|[^\r\n\p{{L}}\p{{N}}]?[{upper}]+[{lower}]*{after}")
    slash_end = end.replace(r"[\r\n]*|", r"[\r\n/]*|")
    gpt4o = cased(contraction + "?") + r"|\p{N}{1,3}" + slash_end
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    sequence = lambda *steps: pre_tokenizers.Sequence(list(steps))
    one = lambda expression: sequence(split(expression), byte_level)
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {
        "gpt-2": (gpt2, False, False),
        "smollm": (sequence(digits, gpt2), False, False),
        "llama-bpe": (one(contraction + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + end), False, True),
        "qwen2": (one(contraction + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + end), True, False),
        "tekken": (one(cased("") + r"|\p{N}" + slash_end), False, True),
        "gpt-4o": (one(gpt4o), False, False),
        "falcon": (sequence(pre_tokenizers.Punctuation("contiguous"), gpt2,
                            pre_tokenizers.Digits(individual_digits=False), split("[0-9][0-9][0-9]")), False, False),
        "deepseek-coder": (sequence(split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"),
                                    split("[一-龥ࠀ-一가-퟿]+"), digits, byte_level), False, False),
        "kimi-k2": (one(r"[\p{Han}]+|" + gpt4o.replace(r"\p{M}]", r"\p{M}&&[^\p{Han}]]").replace("[\\r\\n/]", "[\\r\\n]")),
                    False, False),
        "youtu": (sequence(split("[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+"),
                           split(gpt4o.replace("{1,3}", "")), byte_level), False, True),
        "tiny_aya": (sequence(split(r"\d{1,3}(?=(?:\d{3})*\b)"), split(gpt4o), byte_level), False, False),
        "superbpe": (sequence(split(r"\p{N}+"), split(r"(?=(\d{3})+(?!\d))"), byte_level), False, False),
        # As llama.cpp has it, whose code for digits the first expression says.
        "afmoe": (sequence(split(r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))"),
                           split("[一-鿿㐀-䶿\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0eff\u1780-\u17ff"
                                 "\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+"),
                           split(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                                 r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"), byte_level), False, False),
    }


def pre_tokenizer_goldens(rng):
    """One vocabulary whose merges cross every boundary, so that each cut shows in the ids."""
    corpus = [random_text(rng) for _ in range(4000)]
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trained.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=1100, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), max_token_length=10,
        show_progress=False))
    model = json.loads(trained.to_str())["model"]
    vocab, merges = model["vocab"], [tuple(merge) for merge in model["merges"]]
    texts = ["", " ", "\n", "  \n\n  x", "12345678", "I'm you'LL 'tis", *(random_text(rng) for _ in range(34)),
             "1 12 123 1234 12345 1234567890123", "123½ 12½3456 1½", "99999abc x1234 12٣4567", "CamelCaseHTTP's été's ㄅㄆ한글，かな漢字"]
    ids = {}
    for name, (pre_tokenizer, nfc, ignore_merges) in references().items():
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
        tokenizer.pre_tokenizer = pre_tokenizer
        if nfc:
            tokenizer.normalizer = normalizers.NFC()
        ids[name] = [tokenizer.encode(text).ids for text in texts]
    tokens = [token for token, _ in sorted(vocab.items(), key=lambda entry: entry[1])]
    write("pre_tokenizers.json", {
        "vocabulary": {"model": "gpt2", "tokens": [[i, token, 1] for i, token in enumerate(tokens)],
                       "num_tokens": len(tokens), "merges": [" ".join(merge) for merge in merges]},
        "texts": texts, "ids": ids,
    })


def sentence_piece_goldens(rng):
    with tempfile.TemporaryDirectory() as folder:
        corpus = os.path.join(folder, "corpus")
        with open(corpus, "w", encoding="utf-8") as file:
            file.writelines(random_words(rng).replace("\n", " ").replace("\r", " ") + "\n" for _ in range(3000))
        sentencepiece.SentencePieceTrainer.train(
            input=corpus, model_prefix=corpus, vocab_size=1000, model_type="bpe", byte_fallback=True,
            normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.98,
            allow_whitespace_only_pieces=True, split_digits=True, minloglevel=2)
        reference = sentencepiece.SentencePieceProcessor(corpus + ".model")
    num_tokens = reference.get_piece_size()
    kind = lambda i: (2 if reference.is_unknown(i) else 3 if reference.is_control(i) else 6 if reference.is_byte(i) else 1)
    texts = ["", " ", "  two", "\n\n", "aaaaaaa", *(random_text(rng) for _ in range(60))]
    # Hugging Face's decoder for such checkpoints; broken runs of bytes are left out, where the two differ on purpose.
    decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                 decoders.Strip(" ", 1, 0)])
    ordinary = [i for i in range(num_tokens) if kind(i) == 1]
    id_lists = [[rng.choice(ordinary) for _ in range(rng.randint(0, 12))] for _ in range(40)]
    id_lists += [reference.encode(text) for text in texts]
    pieces = [[reference.id_to_piece(i) for i in ids] for ids in id_lists]
    write("sentence_piece.json", {
        "vocabulary": {"model": "llama", "num_tokens": num_tokens,
                       "tokens": [[i, reference.id_to_piece(i), kind(i)] for i in range(num_tokens)],
                       "scores": [reference.get_score(i) for i in range(num_tokens)], "bos": 1, "eos": 2, "unk": 0},
        "texts": texts, "ids": [reference.encode(text) for text in texts],
        "id_lists": id_lists, "decoded": [decoder.decode(tokens) for tokens in pieces],
    })


def byte_level_goldens(rng):
    """Decoding of arbitrary ids, most of them broken UTF-8, with the tokenizer of the folder tiny."""
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "tiny", "tokenizer.json"))
    texts = [random_text(rng) for _ in range(60)] + ["<|im_start|>user\nHi<|im_end|>", "a<|eos|>b"]
    id_lists = [[rng.randrange(512) for _ in range(rng.randint(0, 16))] for _ in range(80)]
    write("byte_level.json", {
        "texts": texts, "ids": [tokenizer.encode(text).ids for text in texts],
        "id_lists": id_lists,
        "decoded": [tokenizer.decode(ids, skip_special_tokens=False) for ids in id_lists],
        "decoded_skipping": [tokenizer.decode(ids, skip_special_tokens=True) for ids in id_lists],
    })


TEMPLATES = {
    "blocks_on_their_own_lines": """
{%- for message in messages %}
    {% if message['role'] == 'system' -%}
        <<SYS>>{{ message['content'] | trim }}<</SYS>>
    {% elif message.role in ['user', 'tool'] %}
[{{ message.role | upper }}] {{ message.content }}
    {%- else %}
        {%- generation %}
{{ message['content'] + eos_token }}
        {%- endgeneration %}
    {%- endif %}
{% endfor %}
{% if add_generation_prompt %}
{{ bos_token }}[ASSISTANT]
{% endif %}
""",
    "python_methods": """
{%- set ns = namespace(seen=0, last='') -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- set parts = message.content.split('</think>') -%}
{{ parts[-1].lstrip('\\n').rstrip() }}|{{ message.content.startswith('<think>') }}|{{ parts | length }};
{%- elif message.content.strip().endswith('?') -%}
Q:{{ message.content.replace('\\n', ' ').title() }};
{%- else -%}
{{ message.get('name', 'none') }}={{ message.items() | list | length }}={{ message.content[:3] }}={{ message.content[::-1] }};
{%- endif -%}
{%- set ns.seen = ns.seen + 1 -%}
{%- set ns.last = message.role -%}
{%- endfor -%}
{{ ns.seen }} {{ ns.last ~ '!' }} {{ true }} {{ none }} {{ 1.0 }} {{ [1, 'a', {'k': false}] }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 2 ** 3 }}
""",
    "tools_as_json": """
{%- if tools is not none and tools %}
{{- '# Tools\\n' }}
{%- for tool in tools %}
{{- tool | tojson }}
{{ tool.function | tojson(indent=4) }}
{{ tool | tojson(separators=(',', ':'), sort_keys=true) }}
{{ tool.function.description | tojson(ensure_ascii=true) }}
{%- endfor %}
{%- else %}
{{- 'no tools' }}
{%- endif %}
{%- for message in messages %}
{%- for call in message.tool_calls or [] %}
{{ call.function.name }}({{ call.function.arguments | tojson }})
{%- for name, value in call.function.arguments.items() %} {{ name }}:{{ value if value is string else value | tojson }}{% endfor %}
{%- endfor %}
{{ message.role }}: {{ message.content }}
{%- endfor %}
""",
    "macros_and_loop_controls": """
{%- macro show(message, last=false) -%}
<{{ message.role }}{{ ' last' if last else '' }}>{{ message.content }}
{%- endmacro -%}
{%- for message in messages -%}
{%- if message.content == 'skip' -%}{%- continue -%}{%- endif -%}
{%- if message.content == 'stop' -%}{%- break -%}{%- endif -%}
{{ loop.index0 }}{{ show(message, last=loop.last) }}
{%- if loop.previtem is defined and loop.previtem.role == message.role %} again{% endif -%}
{%- endfor -%}
{{ (messages | selectattr('role', 'equalto', 'user') | list | length) }}{{ messages | map(attribute='role') | join(',') }}
{%- if enable_thinking is defined and not enable_thinking %} quiet{% endif %}
""",
}


def message(role, content, **rest):
    return {"role": role, "content": content, **rest}


def template_goldens():
    call = {"id": "call_1", "type": "function", "function": {
        "name": "weather", "arguments": {"zone": "Paris", "days": 2, "deep": {"b": [1, True, None, 0.5, 1e-7, 1e20], "a": "é\n"}}}}
    tools = [{"type": "function", "function": {"name": "weather", "description": "It's <b>\"weather\"</b> & 🙂 \u0001",
                                               "parameters": {"type": "object", "properties": {}, "required": []}}}]
    conversations = [
        {"messages": [message("user", "Hi")]},
        {"messages": [message("system", " Be brief.\n"), message("user", " Hi  there?\n"),
                      message("assistant", "<think>hm</think>\n\nHello! "), message("user", "What?")]},
        {"messages": [message("user", "a", name="Ada"), message("assistant", "b ")], "add_generation_prompt": False},
        {"messages": [message("user", "a"), message("assistant", " b \n")], "add_generation_prompt": False,
         "continue_final_message": True},
        {"messages": [message("user", "q"), message("assistant", "", tool_calls=[call]),
                      message("tool", "{\"t\": 20}"), message("user", "thanks")], "tools": tools},
        {"messages": [message("user", "one"), message("user", "skip"), message("user", "two"), message("user", "stop"),
                      message("user", "three")], "kwargs": {"enable_thinking": False}},
    ]
    cases = []
    for name, template in TEMPLATES.items():
        for conversation in conversations:
            case = {"template": name, "add_generation_prompt": True, "continue_final_message": False, **conversation}
            try:
                rendered = render_jinja_template(
                    [conversation["messages"]], tools=case.get("tools"), chat_template=template,
                    add_generation_prompt=case["add_generation_prompt"],
                    continue_final_message=case["continue_final_message"],
                    bos_token="<s>", eos_token="</s>", **case.get("kwargs", {}))[0][0]
            except ValueError:
                rendered = None  # the template does not print the final message
            cases.append({**case, "rendered": rendered})
    write("chat_templates.json", {"templates": TEMPLATES, "cases": cases})


def main():
    rng = random.Random(1)
    smollm2(sys.argv[1], sys.argv[2])
    pre_tokenizer_goldens(rng)
    sentence_piece_goldens(rng)
    byte_level_goldens(rng)
    template_goldens()


if __name__ == "__main__":
    main()
