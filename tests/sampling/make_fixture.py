#!/usr/bin/env python3
"""Writes what filters.py makes of rows of logits, for the tests of this folder:

  tests/sampling/make_fixture.py        writes filters.json

A case is a row, what is asked of it, and what follows: the logits that change, the tokens that are kept, their
probabilities, and the tokens drawn at one seed. Every decision is far enough from its threshold that float32 takes it
too: a filter's that is not ends the script, and a seed with a draw that is not is passed over.
"""

import itertools
import json
import pathlib

import filters
import numpy as np

SEED = 20261120
PATH = pathlib.Path(__file__).parent / "filters.json"
MARGIN = 2e-6  # of a filter, relative to its threshold
DRAW_MARGIN = 2e-6  # of a uniform
RUN_MARGIN = 1e-4  # of mirostat's cut where mu comes of many draws, each rounded
NUM_DRAWS = 24
MOST_PROBABILITIES = 64  # that a case gives
LEAST_COUNTED = 2e-5  # so that a token comes often enough in a million draws

# As a request has them. Numbers are float32, as they are for who reads them.
OFF = {
    "temperature": 1.0, "dynatemp_range": 0.0, "dynatemp_exponent": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0,
    "typical_p": 1.0, "xtc_probability": 0.0, "xtc_threshold": 0.1, "mirostat": 0, "mirostat_tau": 5.0,
    "mirostat_eta": 0.1, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
    "dry_multiplier": 0.0, "dry_base": 1.75, "dry_allowed_length": 2, "dry_penalty_last_n": -1, "min_tokens": 0,
    "stop_token_ids": [], "logit_bias": [], "allowed_token_ids": [], "bad_words": [], "dry_sequence_breakers": [],
}  # fmt: skip

# Draws of every case are compared one by one; of this row and these, a method each, a million are counted.
COUNTED_ROW = "usual"
COUNTED = [
    {"temperature": 0.7}, {"dynatemp_range": 0.5}, {"top_k": 5}, {"top_p": 0.3}, {"min_p": 0.1}, {"typical_p": 0.3},
    {"xtc_probability": 0.4, "xtc_threshold": 0.027}, {"mirostat": 2, "mirostat_tau": 2.25},
]  # fmt: skip
OTHERS = [
    {}, {"temperature": 0}, {"temperature": 0.05}, {"temperature": 1.9}, {"temperature": 50},
    {"temperature": 0.8, "dynatemp_range": 0.9, "dynatemp_exponent": 2.5},
    {"top_k": 1}, {"top_k": 30, "temperature": 1.4}, {"top_k": 100000},
    {"top_p": 0.001}, {"top_p": 0.9, "temperature": 0.6}, {"top_p": 0.997},
    {"min_p": 0.003}, {"min_p": 0.1, "temperature": 2}, {"min_p": 1},
    {"typical_p": 0.02}, {"typical_p": 0.93, "temperature": 1.3},
    {"xtc_probability": 1, "temperature": 1.2}, {"xtc_probability": 1, "xtc_threshold": 0.013},
    {"xtc_probability": 1, "xtc_threshold": 0.6},
    {"mirostat": 2, "mirostat_tau": 0.4}, {"mirostat": 2, "mirostat_tau": 1.7, "temperature": 0.9}, {"mirostat": 2},
    {"min_p": 0.011, "top_k": 12, "top_p": 0.83},
    {"temperature": 1.5, "min_p": 0.006, "top_k": 25, "typical_p": 0.9, "top_p": 0.77, "xtc_probability": 1,
     "xtc_threshold": 0.06},
    {"dynatemp_range": 0.3, "typical_p": 0.71, "top_p": 0.9, "xtc_probability": 0.5, "xtc_threshold": 0.04},
]  # fmt: skip


def thousandths(values):
    """Multiples of 2^-10, which float32 and a line of text hold exactly."""
    return np.round(values * 1024) / 1024


def make_rows(random):
    rows = {
        "peaked": thousandths(random.normal(0, 3, 32)),
        "flat": thousandths(random.normal(0, 0.3, 32)),
        "usual": thousandths(random.normal(0, 1.2, 40)),
        "equal": np.full(33, 0.75),
        "ties": np.round(random.normal(0, 1.5, 47) * 2) / 2,
        "banned": thousandths(random.normal(0, 1.5, 64)),
        "one": np.full(32, -np.inf),
        "two": np.full(32, -np.inf),
        "far": thousandths(random.normal(0, 60, 48)),
        "ends": np.full(35, -float(np.finfo(np.float32).max)),
        "wide": thousandths(random.normal(0, 2, 1000)),
        "wide ties": np.round(random.normal(0, 2, 777) * 4) / 4,
    }
    rows["usual"][7] = -np.inf
    rows["banned"][random.choice(64, 25, replace=False)] = -np.inf
    rows["one"][19] = -7.5
    rows["two"][[8, 30]] = 1.25, 0.5
    rows["ends"][[4, 21]] = -rows["ends"][0]
    rows["ends"][30] = -np.inf
    return rows


def make_history(random, vocab_size):
    """Prompt and output, of few tokens and with repetitions."""
    few = random.choice(vocab_size, 6, replace=False)
    tokens = [int(token) for token in few[random.integers(0, 6, 40)]]
    tokens[-4:] = tokens[12:16] = tokens[29:33] = tokens[3:7]
    return tokens[:15], tokens[15:]


def changes(random, prompt, output, vocab_size):
    """What is asked of a row with a history: as COUNTED, and as OTHERS."""
    def others(count):
        return [int(token) for token in random.choice(vocab_size, count, replace=False)]

    allowed = sorted(set(others(vocab_size // 2) + output[:2]))
    biases = [[token, bias] for token, bias in zip(others(4), (2.5, -1.25, 100, -np.inf))]
    words = [output[-1:], output[-2:] + others(1), output[-3:-1] + others(1), prompt[-2:] + output[:1]]
    dry = {"dry_multiplier": 0.8}
    counted = [
        {"repetition_penalty": 1.15, "presence_penalty": 0.3, "frequency_penalty": -0.1},
        {"logit_bias": biases[:2]}, {"allowed_token_ids": allowed}, {"bad_words": words},
        {"min_tokens": len(output) + 1, "stop_token_ids": others(3)}, dry,
    ]  # fmt: skip
    return counted, [
        {"repetition_penalty": 1.3}, {"repetition_penalty": 0.7, "top_k": 20}, {"presence_penalty": 0.8},
        {"presence_penalty": -1.5, "frequency_penalty": 0.2}, {"frequency_penalty": 0.45},
        {"logit_bias": biases, "temperature": 3}, {"min_tokens": len(output), "stop_token_ids": others(3)},
        dry | {"dry_base": 1.2, "dry_allowed_length": 1}, dry | {"dry_allowed_length": 3, "dry_penalty_last_n": 17},
        dry | {"dry_sequence_breakers": sorted({output[-3], others(1)[0]})},
        dry | {"logit_bias": biases[:2], "allowed_token_ids": allowed, "bad_words": words, "repetition_penalty": 1.2,
               "frequency_penalty": 0.15, "min_tokens": 100, "dynatemp_range": 0.2, "min_p": 0.02, "top_p": 0.97,
               "typical_p": 0.985},
    ]  # fmt: skip


def as_float32(params):
    params = OFF | params
    return {name: float(np.float32(value)) if isinstance(value, float) else value for name, value in params.items()}


def changed_logits(logits, p, prompt, output, eos):
    logits = filters.add_bias(logits, p["logit_bias"])
    if p["allowed_token_ids"]:
        logits = filters.allow_only(logits, p["allowed_token_ids"])
    logits = filters.ban(logits, filters.last_of_bad_words(p["bad_words"], output))
    if len(output) < p["min_tokens"]:
        logits = filters.ban(logits, p["stop_token_ids"] + eos)
    logits = filters.penalise(logits, prompt, output, p["repetition_penalty"], p["presence_penalty"],
                              p["frequency_penalty"])
    if p["dry_multiplier"] > 0:
        dry = (p[f"dry_{name}"] for name in ("multiplier", "base", "allowed_length", "penalty_last_n",
                                             "sequence_breakers"))
        penalties = filters.dry_penalties(prompt + output, *dry)
        logits = filters.add_bias(logits, [(token, -penalty) for token, penalty in penalties.items()])
    return logits


def apply_filters(logits, p):
    """What is left of a row that has its temperature, in the order that vLLM and llama.cpp act in, but for XTC."""
    stages = [(filters.min_p, p["min_p"], p["min_p"] > 0), (filters.top_k, p["top_k"], p["top_k"] > 0),
              (filters.typical, p["typical_p"], p["typical_p"] < 1), (filters.top_p, p["top_p"], p["top_p"] < 1)]
    if p["mirostat"]:
        stages = [(filters.mirostat, 2 * p["mirostat_tau"], True)]
    for keeps, threshold, is_on in stages:
        if is_on:
            kept, margin = keeps(logits, threshold)
            assert margin > MARGIN, (keeps.__name__, threshold, margin)
            logits = filters.keep_only(logits, kept)
    return logits


def distributions(logits, p):
    """The row's temperature; then the logits that are left without XTC's coin and, thrown, with it."""
    temperature = p["temperature"]
    if temperature < 1e-5:
        greedy = filters.keep_only(logits, np.arange(logits.size) == logits.argmax())
        return 1.0, greedy, greedy
    if p["dynatemp_range"] > 0:
        temperature = filters.dynamic_temperature(logits, temperature, p["dynatemp_range"], p["dynatemp_exponent"])
    plain = apply_filters(logits / temperature, p)
    thrown = plain
    if p["xtc_probability"] > 0 and not p["mirostat"]:
        kept, margin = filters.xtc(plain, p["xtc_threshold"])
        assert margin > MARGIN, ("xtc", p["xtc_threshold"], margin)
        thrown = filters.keep_only(plain, kept)
    return temperature, plain, thrown


def drawn_tokens(plain, thrown, xtc_probability, seed):
    """At positions 0 to NUM_DRAWS; None where one is too close to call."""
    positions = np.arange(NUM_DRAWS)
    coins = filters.uniforms(seed, positions, filters.XTC_COIN) < xtc_probability
    tokens = []
    for uniform, coin in zip(filters.uniforms(seed, positions), coins):
        token, margin = filters.draw(thrown if coin else plain, uniform)
        if margin < DRAW_MARGIN:
            return None
        tokens.append(token)
    return tokens


def in_text(value):
    """JSON has no infinities: null is -inf."""
    return None if value == -np.inf else float(value)


def params_in_text(params):
    biases = [[token, in_text(bias)] for token, bias in params.get("logit_bias", [])]
    return params | ({"logit_bias": biases} if biases else {})


def hexadecimal(kept):
    """A digit for four tokens, the first one's in its lowest bit."""
    digits = np.resize(np.append(kept, np.zeros(3, dtype=bool)), (kept.size + 3) // 4 * 4).reshape(-1, 4)
    return "".join(f"{int(digit @ [1, 2, 4, 8]):x}" for digit in digits)


def make_case(row_name, row, params, is_counted, prompt=(), output=()):
    p = as_float32(params)
    prompt, output, eos = list(prompt), list(output), [1]
    logits = changed_logits(row, p, prompt, output, eos)
    temperature, plain, thrown = distributions(logits, p)
    of_plain, of_thrown = filters.softmax(plain), filters.softmax(thrown)
    share = p["xtc_probability"]
    probabilities = (1 - share) * of_plain + share * of_thrown
    kept = (plain if share < 1 else thrown) > -np.inf
    seed, tokens = next(
        (seed, tokens) for seed in itertools.count(2**40 + 1)
        if (tokens := drawn_tokens(of_plain, of_thrown, share, seed)) is not None)
    case = {"row": row_name, "params": params_in_text(params), "temperature": temperature, "kept": hexadecimal(kept),
            "seed": seed, "tokens": tokens}
    if row_name == COUNTED_ROW and is_counted:
        assert kept.sum() > 1 and probabilities[kept].min() > LEAST_COUNTED, params
        case["is_counted"] = True
    if kept.sum() <= MOST_PROBABILITIES:
        case["probabilities"] = [float(f"{x:.9g}") for x in probabilities[kept]]
    if prompt:
        changed = [[int(token), in_text(logits[token])] for token in np.flatnonzero(logits != row)]
        case |= {"prompt": prompt, "output": output, "eos": eos, "changed": changed}
    return case


def follow_mirostat(row, p, seed, num_tokens):
    """Tokens and the mu behind each; None where a decision is too close to call."""
    logits = row / p["temperature"]
    mu = 2 * p["mirostat_tau"]
    steps = []
    for uniform in filters.uniforms(seed, np.arange(num_tokens)):
        kept, cut_margin = filters.mirostat(logits, mu)
        probabilities = filters.softmax(filters.keep_only(logits, kept))
        token, margin = filters.draw(probabilities, uniform)
        if cut_margin < RUN_MARGIN or margin < DRAW_MARGIN:
            return None
        mu -= p["mirostat_eta"] * (-np.log2(probabilities[token]) - p["mirostat_tau"])
        steps.append([token, mu])
    return steps


def make_mirostat_runs(rows):
    for name, params in [("usual", {"mirostat_tau": 2.0, "mirostat_eta": 0.5}), ("wide", {"mirostat_tau": 5.0}),
                         ("wide", {"mirostat_tau": 3.0, "mirostat_eta": 1.0, "temperature": 1.4})]:
        params = {"mirostat": 2, **params}
        seed, steps = next(
            (seed, steps) for seed in itertools.count(1)
            if (steps := follow_mirostat(rows[name], as_float32(params), seed, 40)) is not None)
        yield {"row": name, "params": params, "seed": seed, "steps": steps}


def make_fixture():
    random = np.random.default_rng(SEED)
    rows = make_rows(random)
    cases = [make_case(name, row, params, params in COUNTED)
             for name, row in rows.items() for params in COUNTED + OTHERS]
    for name in (COUNTED_ROW, "peaked", "ties", "banned", "wide"):
        prompt, output = make_history(random, rows[name].size)
        counted, others = changes(random, prompt, output, rows[name].size)
        cases += [make_case(name, rows[name], params, params in counted, prompt, output)
                  for params in counted + others]
    # Words that are as long as the output and one more token.
    for length in (0, 2):
        words = [output[:length] + [15], prompt[-1:] + output[:length] + [16]]
        cases.append(make_case(name, rows[name], {"bad_words": words}, False, prompt, output[:length]))
    return {
        "written_by": f"tests/sampling/make_fixture.py, seed {SEED}",
        "rows": {name: [in_text(x) for x in row] for name, row in rows.items()},
        "cases": cases,
        "mirostat_runs": list(make_mirostat_runs(rows)),
    }


def to_text(fixture):
    """JSON with a line a row and a case."""
    def block(items):
        return ",\n".join(items)

    compact = {"separators": (",", ":"), "allow_nan": False}
    rows = block(f"{json.dumps(name)}:{json.dumps(row, **compact)}" for name, row in fixture["rows"].items())
    cases, runs = (block(json.dumps(item, **compact) for item in fixture[name]) for name in ("cases", "mirostat_runs"))
    head = json.dumps(fixture["written_by"])
    return f'{{"written_by":{head},\n"rows":{{\n{rows}}},\n"cases":[\n{cases}],\n"mirostat_runs":[\n{runs}]}}\n'


def main():
    fixture = make_fixture()
    PATH.write_text(to_text(fixture))
    print(f"{PATH}: {len(fixture['cases'])} cases, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
