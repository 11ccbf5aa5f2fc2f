"""The sampling methods over a whole row in float64, as their papers and vLLM's and llama.cpp's documents tell them: what
make_fixture.py writes down and the C++ sampler is held to. Nothing here knows how that computes them.

A row is an array of logits; -inf is a token that cannot be drawn. A change of logits returns a new row. A filter returns
which tokens it keeps, [vocab] of bool, and its margin: how far from its threshold its closest decision was, relative to
the threshold. A decision that exact arithmetic settles, as among equal logits, has the margin infinity.
"""

import numpy as np

INFINITY = float("inf")


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


# Changes of logits.


def add_bias(logits, biases):
    """OpenAI's logit_bias. biases: [(token id, bias)]"""
    changed = logits.copy()
    for token_id, bias in biases:
        changed[token_id] += bias
    return changed


def allow_only(logits, token_ids):
    changed = np.full_like(logits, -INFINITY)
    changed[token_ids] = logits[token_ids]
    return changed


def ban(logits, token_ids):
    changed = logits.copy()
    changed[token_ids] = -INFINITY
    return changed


def last_of_bad_words(words, output):
    """The tokens that would end one of `words`, lists of token ids, behind `output`: vLLM's bad_words."""
    return [word[-1] for word in words if (output + [word[-1]])[-len(word):] == word]


def penalise(logits, prompt, output, repetition, presence, frequency):
    """Keskar et al., "CTRL", 2019, over prompt and output; OpenAI's two over the output alone."""
    seen = np.isin(np.arange(logits.size), prompt + output)
    repeated = np.where(logits > 0, logits / repetition, logits * repetition)
    counts = np.bincount(np.array(output, dtype=int), minlength=logits.size)
    return np.where(seen, repeated, logits) - frequency * counts - presence * (counts > 0)


def dry_penalties(tokens, multiplier, base, allowed_length, last_n, breakers):
    """{token: what it loses}. p-e-w, text-generation-webui pull request 5677, 2024; last_n as llama.cpp's."""
    tokens = tokens[-last_n:] if last_n > 0 else tokens
    longest = {}
    for place in range(1, len(tokens)):
        length = 0
        while length < place and tokens[place - 1 - length] == tokens[-1 - length] not in breakers:
            length += 1
        if tokens[place] not in breakers:
            longest[tokens[place]] = max(longest.get(tokens[place], 0), length)
    return {token: multiplier * base ** (length - allowed_length)
            for token, length in longest.items() if length >= allowed_length}


# Temperatures.


def dynamic_temperature(logits, temperature, spread, exponent):
    """llama.cpp's temp_ext, of the tokens that can be drawn."""
    possible = logits > -INFINITY
    if possible.sum() <= 1:
        return temperature
    least, most = max(0.0, temperature - spread), temperature + spread
    return least + (most - least) * (entropy(softmax(logits)) / np.log(possible.sum())) ** exponent


def entropy(probabilities):
    positive = probabilities[probabilities > 0]
    return -(positive * np.log(positive)).sum()


# Filters.


def min_p(logits, share):
    """Nguyen et al., arXiv:2407.01082."""
    ratio = np.exp(logits - logits.max())
    away = np.abs(ratio[ratio < 1] / share - 1)
    return ratio >= share, away.min(initial=INFINITY)


def top_k(logits, count):
    """As vLLM: what equals the last one is kept too."""
    possible = np.sort(logits[logits > -INFINITY])
    if count >= possible.size:
        return logits > -INFINITY, INFINITY
    least = possible[-count]
    return logits >= least, least - possible[possible < least].max(initial=-INFINITY)


def shortest_prefix(order, probabilities, share):
    """The first of `order` whose probabilities reach `share`, the one that crosses it included."""
    reached = probabilities[order].cumsum()
    size = int(np.searchsorted(reached, share)) + 1
    kept = np.zeros(order.size, dtype=bool)
    kept[order[:size]] = True
    return kept, np.abs(reached / share - 1).min(), size


def top_p(logits, share):
    """Holtzman et al., arXiv:1904.09751; of equals the lower id first."""
    kept, margin, _ = shortest_prefix(np.argsort(-logits, kind="stable"), softmax(logits), share)
    return kept, margin


def typical(logits, share):
    """Meister et al., "Locally typical sampling", 2023; of equals the lower id first."""
    probabilities = softmax(logits)
    with np.errstate(divide="ignore"):
        distance = np.abs(-np.log(probabilities) - entropy(probabilities))
    order = np.argsort(distance, kind="stable")
    kept, margin, size = shortest_prefix(order, probabilities, share)
    last, following = order[size - 1], order[min(size, order.size - 1)]
    if logits[last] != logits[following]:
        margin = min(margin, distance[following] - distance[last])
    return kept, margin


def xtc(logits, threshold):
    """p-e-w, text-generation-webui pull request 6335, 2024; of equals the highest id stays."""
    probabilities = softmax(logits)
    is_top = probabilities >= threshold
    kept = ~is_top & (logits > -INFINITY)
    if is_top.sum() < 2:
        kept |= is_top
    else:
        kept[np.flatnonzero(is_top & (probabilities == probabilities[is_top].min()))[-1]] = True
    return kept, np.abs(probabilities / threshold - 1).min()


def mirostat(logits, mu):
    """The cut of Basu et al., arXiv:2007.14966, its second algorithm: what surprises by more than `mu` bits goes."""
    with np.errstate(divide="ignore"):
        surprise = -np.log2(softmax(logits))
    kept = surprise <= mu
    if not kept.any():
        kept[logits.argmax()] = True
    return kept, np.abs(surprise / mu - 1).min()


def keep_only(logits, kept):
    return np.where(kept, logits, -INFINITY)


# Draws.

SAMPLE_TOKEN, XTC_COIN = 0, 1  # what a number is for


def philox(counter, key):
    """Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011. counter: 4 arrays of 32 bits."""
    low = np.uint64(0xFFFFFFFF)
    counter = [np.asarray(word, dtype=np.uint64) for word in counter]
    key = list(key)
    for _ in range(10):
        products = [np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]]
        high = [product >> np.uint64(32) for product in products]
        counter = [high[1] ^ counter[1] ^ np.uint64(key[0]), products[1] & low,
                   high[0] ^ counter[3] ^ np.uint64(key[1]), products[0] & low]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return counter


def uniforms(seed, positions, purpose=SAMPLE_TOKEN):
    """Of sample 0 of a request: its numbers are functions of their place. The midpoints of 2^52 equal parts of (0, 1)."""
    zero = np.zeros_like(positions)
    words = philox([positions, zero, zero + purpose, zero], (seed % 2**32, seed >> 32))
    return (((words[0] << np.uint64(32)) | words[1]) >> np.uint64(12)).astype(float) * 2.0**-52 + 2.0**-53


def draw(probabilities, uniform):
    """The inverse transform, in the order of the ids: the token, and how far `uniform` is from another one's."""
    reached = probabilities.cumsum()
    ends = reached[probabilities > 0]
    margin = np.abs(ends[:-1] - uniform).min(initial=INFINITY)
    return int(np.searchsorted(reached, uniform * reached[-1], side="right")), margin
