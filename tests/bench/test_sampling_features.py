"""bench/sampling_features.py on a tiny model."""

import argparse

import pytest
import sampling_features

FLAGS = argparse.Namespace(rounds=2, input_len=20, output_len=60, samples=2, vocab_size=256)


def test_each_feature_gets_a_rate_a_round(port, monkeypatch):
    of_any_vocabulary = {name: feature for name, feature in sampling_features.FEATURES.items()
                         if name not in ("7,000 allowed ids", "a JSON schema")}
    monkeypatch.setattr(sampling_features, "FEATURES", of_any_vocabulary)
    rates = sampling_features.run_rounds(port, FLAGS)
    assert rates.keys() == of_any_vocabulary.keys()
    assert all(len(of_feature) == FLAGS.rounds for of_feature in rates.values())


def test_a_refusal_names_the_feature(port, monkeypatch):
    monkeypatch.setattr(sampling_features, "FEATURES", {"too hot": {"temperature": -1}})
    with pytest.raises(OSError, match="temperature"):
        sampling_features.run_rounds(port, FLAGS)
