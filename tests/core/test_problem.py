import copy
import dataclasses
import io
import pickle
import re
import zipfile

import numpy as np
import pytest

import solid_bandits as sb
from solid_bandits._internal import files

FEATURES = np.arange(12.0).reshape(2, 3, 2) + 1
THETA = np.array([1.0, -0.5])


def test_means_gaps_and_optimal_arms_follow_their_definitions():
    problem = sb.Problem(FEATURES, THETA)
    for x in range(2):
        means = [float(FEATURES[x, a] @ THETA) for a in range(3)]
        assert problem.optimal_arms[x] == means.index(max(means))
        for a in range(3):
            assert problem.means[x, a] == pytest.approx(means[a])
            assert problem.gaps[x, a] == pytest.approx(max(means) - means[a])


def test_bounds_are_norms_unless_declared():
    problem = sb.Problem(FEATURES, THETA)
    assert pytest.approx(max(np.linalg.norm(f) for f in FEATURES.reshape(-1, 2))) == problem.L
    assert pytest.approx(np.linalg.norm(THETA)) == problem.B
    assert sb.Problem(FEATURES, THETA, theta_bound=3).B == 3


def test_it_cannot_be_changed_not_even_through_the_arrays_it_was_made_of():
    features = FEATURES.copy()
    problem = sb.Problem(features, THETA)
    features[0, 0, 0] = 99
    assert problem.features[0, 0, 0] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.theta = THETA
    for array in (problem.features, problem.theta, problem.context_probs, problem.means, problem.gaps):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_as_frozen(copied):
    problem = sb.Problem(FEATURES, THETA, [0.25, 0.75], 0.3, 2.0)
    again = copied(problem)
    assert again.fingerprint == problem.fingerprint
    for array in (
        again.features,
        again.theta,
        again.context_probs,
        again.means,
        again.gaps,
        *again.table[:2],
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        again.theta = THETA


def test_repr_says_what_matters():
    assert re.fullmatch(
        r"Problem\(contexts=2, arms=3, dim=2, noise_std=1, least gap=1\.00, L=[\d.]+, B=1\.12\)",
        repr(sb.Problem(FEATURES, THETA)),
    )


BAD = [
    ({"features": [[[np.nan, 1]]]}, r"features must be finite everywhere, got nan at index \(0, 0, 0\)"),
    ({"features": [[[np.inf, 1]]]}, r"features must be finite everywhere, got inf"),
    ({"features": [[1.0, 2.0]]}, r"features must be .* \(contexts, arms, dim\), got shape \(1, 2\)"),
    ({"features": np.zeros((2, 0, 3))}, r"features must be .*, got shape \(2, 0, 3\)"),
    ({"features": "abc"}, "features must be an array of numbers"),
    ({"features": [[[1, 2], [3]]]}, "features must be an array of numbers"),
    (
        {"features": FEATURES * 1e200},
        "features must be at most 1e\\+30 in size, got 1.2e\\+201; use larger units",
    ),
    ({"theta": [1e308, 1e308]}, "theta and features are too large"),
    ({"theta": [1, 2, 3]}, "theta has 3 entries; .* need 2"),
    ({"theta": [np.nan, 1]}, "theta must be finite everywhere, got nan"),
    ({"context_probs": [0.5, 0.6]}, "context_probs sums to 1.1; it must sum to 1"),
    ({"context_probs": [-0.5, 1.5]}, "context_probs holds -0.5 for context 0"),
    ({"context_probs": [0.0, 1.0]}, "context_probs holds 0 for context 0"),
    ({"context_probs": [1.0]}, "context_probs has 1 entries; the features have 2"),
    ({"noise_std": 0}, "noise_std must be > 0, got 0"),
    ({"noise_std": -1}, "noise_std must be > 0, got -1"),
    ({"noise_std": float("nan")}, "noise_std must be finite and > 0, got nan"),
    ({"noise_std": "loud"}, "noise_std must be a number, got 'loud'"),
    ({"theta_bound": 0.5}, "theta_bound is 0.5; give at least the norm of theta, 1.118"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_input_is_one_line_that_names_the_argument(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        sb.Problem(**{"features": FEATURES, "theta": THETA, **change})
    assert "\n" not in str(caught.value)


def test_files_round_trip(tmp_path):
    for problem in (
        sb.Problem(FEATURES, THETA, [0.25, 0.75], 0.3, 2.0),
        sb.Problem(FEATURES, THETA),
    ):
        problem.save(tmp_path / "p.npz")
        again = sb.Problem.load(tmp_path / "p.npz")
        assert again.fingerprint == problem.fingerprint
        assert again.theta_bound == problem.theta_bound


def test_fingerprints_differ_when_any_number_does():
    fields = {
        "features": FEATURES,
        "theta": THETA,
        "context_probs": [0.25, 0.75],
        "noise_std": 0.3,
        "theta_bound": 2.0,
    }
    changes = {"features": FEATURES + 1e-9, "theta": -THETA, "context_probs": [0.75, 0.25], "noise_std": 0.4}
    prints = {sb.Problem(**{**fields, name: value}).fingerprint for name, value in changes.items()}
    prints |= {sb.Problem(**fields).fingerprint, sb.Problem(**{**fields, "theta_bound": None}).fingerprint}
    assert len(prints) == 6


def test_unreadable_files_say_so(tmp_path):
    bad = tmp_path / "bad.npz"
    with pytest.raises(ValueError, match="cannot be read"):
        sb.Problem.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="cannot be read"):
        sb.Problem.load(tmp_path)
    bad.write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"not a whole \.npz of plain numbers"):
        sb.Problem.load(bad)
    bad.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(ValueError, match=r"not a whole \.npz of plain numbers"):
        sb.Problem.load(bad)
    np.savez(bad, features=FEATURES)
    with pytest.raises(ValueError, match="lacks theta"):
        sb.Problem.load(bad)
    np.savez(bad, features=FEATURES, theta=THETA, sigma=1.0)
    with pytest.raises(ValueError, match="unknown fields sigma"):
        sb.Problem.load(bad)
    np.savez(bad, features=FEATURES, theta=THETA, noise_std=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"noise_std in .* has shape \(2,\)"):
        sb.Problem.load(bad)
    np.savez(bad, features=np.array([object()]), theta=THETA)
    with pytest.raises(ValueError, match=r"not a whole \.npz of plain numbers"):
        sb.Problem.load(bad)
    np.save(tmp_path / "one.npy", THETA)
    with pytest.raises(ValueError, match=r"not a whole \.npz of plain numbers"):
        sb.Problem.load(tmp_path / "one.npy")
    with pytest.raises(ValueError, match=r"ending in \.npz"):
        sb.Problem(FEATURES, THETA).save(tmp_path / "p.txt")


def test_files_that_promise_too_much_are_refused_before_memory_is_taken(tmp_path, monkeypatch):
    path = tmp_path / "p.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6, 1)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("features.npy", header.getvalue())  # 7 TiB
        archive.writestr("theta.npy", header.getvalue())
    with pytest.raises(ValueError, match=r"not a whole \.npz of plain numbers"):
        sb.Problem.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("features.npy", "theta.npy"):
            archive.writestr(name, bytes(2**26))
    monkeypatch.setattr(files.read_archive, "__defaults__", (2**26,))
    with pytest.raises(ValueError, match="holds more than the limit of 64 MiB"):
        sb.Problem.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("theta.npy", b"")
        archive.writestr("theta", b"")
    with pytest.raises(ValueError, match="has a field twice"):
        sb.Problem.load(path)
    with pytest.raises(ValueError, match="it is not a plain file"):
        sb.Problem.load("/dev/zero")


def test_arrays_in_files_may_be_in_any_order_and_of_any_type(tmp_path):
    np.savez_compressed(
        tmp_path / "p.npz",
        features=np.asfortranarray(FEATURES.astype(np.float32)),
        theta=THETA.astype(">f8"),
        noise_std=2,
    )
    again = sb.Problem.load(tmp_path / "p.npz")
    assert (again.features == FEATURES).all()
    assert again.fingerprint == sb.Problem(FEATURES, THETA, noise_std=2).fingerprint
