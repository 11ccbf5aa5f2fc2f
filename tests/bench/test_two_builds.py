"""bench/two_builds.py: the bits that it compares, and what it says of them and of figures."""

import os

import two_builds

BUILD = two_builds.Pagoda(os.environ["PAGODA_BINARY"], 1)
TINY = two_builds.Case("tiny-llama31, cpu", two_builds.TINY_MODELS / "tiny-llama31", ("--device", "cpu"))


def test_answers_are_compared_by_all_but_times(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(two_builds.prompt_lines(1))
    one, again = (two_builds.answers(BUILD, TINY, prompts) for _ in range(2))
    assert len(one) == 2 * len(two_builds.SAMPLED) and all(answer["token_ids"] for answer in one)
    assert two_builds.difference(one, again) == "the same"


def test_another_arithmetic_differs(tmp_path):
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(two_builds.prompt_lines(1))
    quantised = TINY._replace(flags=(*TINY.flags, "--kv-cache-dtype", "int4"))
    both = [two_builds.answers(BUILD, case, prompts) for case in (TINY, quantised)]
    assert "logits_hash" in two_builds.difference(*both)


def test_prompts_are_a_function_of_their_seed():
    assert two_builds.prompt_lines(1) == two_builds.prompt_lines(1) != two_builds.prompt_lines(2)


def test_a_difference_names_the_prompt_and_the_fields():
    before = [{"text": "a", "logits_hash": "1"}, {"text": "b", "logits_hash": "2"}]
    after = [before[0], {"text": "b", "logits_hash": "3", "logprobs": []}]
    assert two_builds.difference(before, after) == "1 of 2 differ, prompt 1 first: logits_hash, logprobs"
    assert two_builds.difference(before, after[:1]) == "2 and 1 answers"


def test_figures_hold_within_the_first_builds_own_turns():
    turns = [95.0, 100.0, 104.0]
    assert two_builds.figure_row("x", turns, [90.0, 97.0, 99.0])[3:] == ["0.970", "0.950 to 1.040", "yes"]
    assert two_builds.figure_row("x", turns, [90.0])[5] == "no"
    assert two_builds.figure_row("x", turns, [110.0])[5] == "faster"
