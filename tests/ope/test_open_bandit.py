"""The Open Bandit small sample (Saito et al. 2021, arXiv 2008.07146), from the archive of obp, which ships it."""

import io
import os
import re
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request
from http.client import HTTPException

import numpy as np
import polars as pl
import pytest

import solid_bandits as sb
from solid_bandits import ope

PUBLISHED = 0.004553
"""IPW of BernoulliTS from the log of the random policy, campaign "all", as obp's documentation has it."""


@pytest.fixture(scope="module")
def archive():
    """The files of obp 0.5.7 from the registry that pip uses; the package itself does not install on this Python."""
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    known = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    page = (os.environ.get("PIP_INDEX_URL") or known or "https://pypi.org/simple").rstrip("/") + "/obp/"
    try:
        with urllib.request.urlopen(page, timeout=30) as answer:
            links = re.findall(r'href="([^"]*obp-0\.5\.7\.tar\.gz[^"]*)"', answer.read().decode())
        with urllib.request.urlopen(urllib.parse.urljoin(page, links[0]), timeout=120) as answer:
            return tarfile.open(fileobj=io.BytesIO(answer.read()))
    except (OSError, IndexError, HTTPException, tarfile.TarError) as error:
        pytest.skip(f"the archive of obp is out of reach: {type(error).__name__}")


@pytest.mark.long
def test_the_published_value_of_thompson_sampling(archive):
    """Its probabilities are shares of 100,000 draws from the priors, by the generator and seed of obp's example."""
    text = archive.extractfile("obp-0.5.7/obp/policy/conf/prior_bts.yaml").read().decode()
    alpha, beta = np.array(re.findall(r"- ([\d.]+)", text)[:160], dtype=float).reshape(
        2, 80
    )  # campaign "all" is first
    table = pl.read_csv(archive.extractfile("obp-0.5.7/obp/dataset/obd/random/all/all.csv").read())
    draws = np.random.RandomState(12345).beta(alpha, beta, size=(100_000, 80))
    first = draws.argsort(axis=1)[:, ::-1]
    chances = np.array([np.bincount(first[:, place], minlength=80) / 100_000 for place in range(3)])
    columns = {"arm": "item_id", "reward": "click", "probability": "propensity_score"}
    log = sb.logs.from_table(table, columns=columns)
    policy = chances[table["position"].to_numpy() - 1][:, np.array(log["arms"][0].to_list(), dtype=int)]
    found = ope.evaluate(log, policy, logger="fixed")
    assert found.value("ips") == pytest.approx(PUBLISHED, abs=5e-7)
    assert found.answer.low < found.value("ips") < found.answer.high
