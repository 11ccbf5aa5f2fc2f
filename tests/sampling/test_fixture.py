"""filters.py against what can be worked out by hand, and filters.json against what filters.py makes today."""

import json
import math

import filters
import make_fixture
import numpy as np
import pytest

LN2 = np.log(2)
ROW = -LN2 * np.array([1.0, 2.0, 3.0, 3.0])  # probabilities 1/2, 1/4, 1/8, 1/8: an entropy of 1.75 bits
NOTHING = -np.inf


def kept(filtered):
    return np.flatnonzero(filtered[0]).tolist()


def assert_same(made, stored):
    """Equal, but for the last bits of another machine's exp and log."""
    assert type(made) is type(stored)
    if isinstance(made, float):
        assert math.isclose(made, stored, rel_tol=1e-8)
    elif isinstance(made, dict):
        assert made.keys() == stored.keys()
        for name, value in made.items():
            assert_same(value, stored[name])
    elif isinstance(made, list):
        assert len(made) == len(stored)
        for one, other in zip(made, stored):
            assert_same(one, other)
    else:
        assert made == stored


def test_the_fixture_is_what_the_script_makes():
    assert_same(json.loads(make_fixture.to_text(make_fixture.make_fixture())), json.loads(make_fixture.PATH.read_text()))


def test_filters_of_halves():
    assert filters.softmax(ROW) == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 8])
    assert kept(filters.top_k(ROW, 2)) == [0, 1]
    assert kept(filters.top_k(ROW, 3)) == [0, 1, 2, 3]
    assert kept(filters.top_p(ROW, 0.49)) == [0]
    assert kept(filters.top_p(ROW, 0.51)) == [0, 1]
    assert kept(filters.top_p(ROW, 0.8)) == [0, 1, 2]
    assert kept(filters.min_p(ROW, 0.3)) == [0, 1]
    assert kept(filters.min_p(ROW, 1)) == [0]
    assert kept(filters.typical(ROW, 0.2)) == [1]
    assert kept(filters.typical(ROW, 0.7)) == [0, 1]
    assert kept(filters.typical(ROW, 0.8)) == [0, 1, 2]
    assert kept(filters.xtc(ROW, 0.2)) == [1, 2, 3]
    assert kept(filters.xtc(ROW, 0.1)) == [3]
    assert kept(filters.xtc(ROW, 0.3)) == [0, 1, 2, 3]
    assert kept(filters.mirostat(ROW, 2.5)) == [0, 1]
    assert kept(filters.mirostat(ROW, 0.5)) == [0]


def test_margins_tell_how_close_a_decision_was():
    assert filters.top_p(ROW, 0.5)[1] == pytest.approx(0)
    assert filters.top_p(ROW, 0.6)[1] == pytest.approx(1 / 6)
    assert filters.min_p(ROW, 0.2)[1] == pytest.approx(0.25)
    assert filters.xtc(ROW, 0.25)[1] == pytest.approx(0)
    assert filters.mirostat(ROW, 3)[1] == pytest.approx(0)
    assert filters.draw(filters.softmax(ROW), 0.74) == (1, pytest.approx(0.01))


def test_temperatures_between_the_surest_and_the_flattest():
    assert filters.dynamic_temperature(np.zeros(5), 1, 0.5, 3) == pytest.approx(1.5)
    assert filters.dynamic_temperature(np.array([0, -800, -800]), 1, 0.5, 3) == pytest.approx(0.5)
    assert filters.dynamic_temperature(ROW, 1, 0.5, 1) == pytest.approx(0.5 + 1.75 / 2)
    assert filters.dynamic_temperature(np.array([1, NOTHING]), 0.7, 0.5, 1) == 0.7


def test_changes_of_logits():
    row = np.array([2.0, -2.0, 1.0, 4.0])
    assert filters.penalise(row, [0], [1, 1, 2], 2, 0.5, 0.25).tolist() == [1, -5, -0.25, 4]
    assert filters.add_bias(row, [(1, 5), (3, NOTHING)]).tolist() == [2, 3, 1, NOTHING]
    assert filters.allow_only(row, [3]).tolist() == [NOTHING] * 3 + [4]
    assert filters.ban(row, [0, 2]).tolist() == [NOTHING, -2, NOTHING, 4]
    assert filters.last_of_bad_words([[7], [1, 2], [2, 1], [3, 2, 1, 0]], [3, 2, 1]) == [7, 2, 0]


def test_dry_penalises_what_goes_on_with_a_repetition():
    def penalties(tokens, last_n=-1, breakers=()):
        return filters.dry_penalties(tokens, 0.5, 2, 2, last_n, breakers)

    assert penalties([1, 2, 3, 4, 1, 2]) == {3: 0.5}
    assert penalties([1, 2, 3, 4, 1, 2, 3]) == {4: 1}
    assert penalties([1, 2, 3, 4, 2]) == {}
    assert penalties([1, 2, 3, 4, 1, 2], last_n=5) == {}
    assert penalties([7, 1, 2, 3, 7, 1, 2], breakers=[7]) == {3: 0.5}
    assert penalties([1, 2, 3, 1, 2], breakers=[3]) == {}


def test_random_numbers_are_the_published_ones():
    """Random123's kat_vectors."""
    words = filters.philox([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], (0xA4093822, 0x299F31D0))
    assert [int(word) for word in words] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    words = filters.philox([0, 0, 0, 0], (0, 0))
    assert [int(word) for word in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
