"""The sets of the study, where they are installed."""

import sys
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[2] / "studies" / "streams"
sys.path.insert(0, str(STUDY))
from sets import SETS, standardised  # noqa: E402

SIZES = {
    "digits": (1797, 10, 650),
    "Satellite": (6435, 6, 222),
    "Shuttle": (58_000, 7, 70),
    "Swissmetro": (10_719, 3, 30),
    "MovieLens-100k": (9596, 10, 23),
    "Jester": (19_181, 30, 330),
}


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_what_the_page_says_or_is_skipped(name):
    stream = SETS[name]()
    if stream is None:
        pytest.skip(f"{name} is not installed")
    assert (stream.length, stream.n_arms, stream.dim) == SIZES[name]
    block = next(stream.blocks(0, 0)).arrays
    rewards = block.means[block.available]
    if name == "Jester":
        assert np.abs(rewards).max() <= 1
    else:
        assert set(np.unique(rewards)) <= {0.0, 1.0}
    if name in ("digits", "Satellite", "Shuttle", "Swissmetro"):
        assert (block.means.sum(axis=1) == 1).all()  # one right arm in each round


def test_columns_are_standardised_and_constant_ones_stay_finite():
    columns = standardised(np.array([[1.0, 5.0], [3.0, 5.0]]))
    assert columns.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
