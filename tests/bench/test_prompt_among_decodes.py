"""bench/prompt_among_decodes.py on a tiny model."""

import argparse

import prompt_among_decodes
import pytest


def make_flags(**changes):
    return argparse.Namespace(**{"streams": 2, "prompt_len": 40, "output_len": 100, "alone_s": 0.2, **changes})


def test_gaps_are_told_apart_by_the_prompt(port, monkeypatch):
    monkeypatch.setattr(prompt_among_decodes, "VOCAB_SIZE", 256)
    alone, beside, ttft = prompt_among_decodes.turn(make_flags(alone_s=0.0), port)
    assert ttft > 0 and all(gap >= 0 for gap in alone + beside)


def test_a_refusal_is_said(port):
    with pytest.raises(OSError, match="400 Bad Request"):  # ids outside of the vocabulary
        prompt_among_decodes.turn(make_flags(), port)


def test_an_event_may_come_in_two_parts():
    stream = prompt_among_decodes.Stream.__new__(prompt_among_decodes.Stream)
    stream.received = [(1.0, b'data: {"a"}\n\nda'), (2.0, b'ta: {"b"}\n\n'), (3.0, b'data: {"c"}\n\ndata: {"d"}\n\n'),
                       (4.0, b"data: [DONE]\n\n")]
    assert stream.token_times() == [1.0, 2.0, 3.0, 3.0]


def test_stops_lengthen_the_steps_that_they_fall_into():
    assert prompt_among_decodes.steps_with_stops(3, [(1, 2), (4.5, 1), (9, 2)]) == [6, 3, 5]
