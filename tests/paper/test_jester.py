"""From Jester's ratings to the bandit problem: on a small file made up here, and the facts on the published one."""

import base64
import functools
import hashlib
import http.server
import importlib
import io
import os
import threading
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from solid_bandits.paper import jester
from solid_bandits.paper.jester import data as data
from solid_bandits.paper.jester import fit

NEEDED = "the Jester problem needs its extra: pip install 'solid-bandits[jester]'"
neural_network = pytest.importorskip("sklearn.neural_network", reason=NEEDED)
metrics = pytest.importorskip("sklearn.metrics", reason=NEEDED)
pytest.importorskip("pooch", reason=NEEDED)
pytest.importorskip("xlrd", reason=NEEDED)

# The function has the module's name, so the module is not reached through the package.
pipeline = importlib.import_module("solid_bandits.paper.jester.problem")

REAL = Path(os.environ.get("SOLID_BANDITS_DATA") or Path(__file__).parents[3] / "shared" / "data")
needs_ratings = pytest.mark.skipif(
    not (REAL / "jester-data-1.zip").is_file(),
    reason="no Jester ratings: put jester-data-1.zip into a folder and name the folder in SOLID_BANDITS_DATA",
)

# An Excel file of the ratings `three_users()`, as spreadsheets before 2007 wrote it (zlib, base64).
EXCEL = zlib.decompress(
    base64.b64decode(
        "eNrtWEFIFFEY/t646+6KrrO2BirIIqSlXqJLEDoW1J4S61JEUGuzRChrbF3qkmV7iiLoVHQRPBSB1SWLCuoWFBh1EIJgt46dioyw"
        "bcf//2cGxlzEDRWV+Yf53r//9/733s773sy8eT8dy48/bi7gH+tFFUpWBNWemKIz4v7QQbxlseuWYTot3zaURcI0kdVBPK97F+I5"
        "5PkuQMOjwGtC4Audx3EW/SOZdGINbZ+MIaV4DD2ECncpEkWTjKpB8JTgFsGHUvOFYJ9Ergv2UN28OoZpo79zt6Pio1qbcFFwu1OS"
        "80kiO9GIN6ziSzeVXTeIvdkzqeH1SbQGajEBmrdkOpPOpobziNMETmDWSgA/3ZX6KuHH1zauQPHfC+OhMvFbWgAYhXVSBJ6jm+u9"
        "KnuCzxXlbmpbDd93ZZ3qC9Zpnei3ltBEvfgxUbFOucX73z8cHBwwTkhk1GmN5bONO4WFy5xByVFhpF+k6eyUjC7BK9Jqi/jNgnHS"
        "HpXtA42Oc2BM6lwVtp362SX20ejw+NvJz3079LQ199XYQf5ksnAxPjljjKON/rRJ+XyMoVt1qzu32Z4Zbqmc1f5ZsGnRyg9rujN2"
        "y3lM1eMlTKboetxQcK5KTJ5TMcwJ2vEf4i9mfwn6rM8uxZqiPVVGe8qjvdPiz5Q4K/mXceoPY8cc49Ks3cL/5frsZmZt7WlltKd5"
        "tPdW/D2i2AfSQkuR8Zq0v1Ks3ddqtOyz65E10as14Ik8Yfs8+8Ma+OabbxvJ+E1Fc97/eV8QdPYWIee7Di19q+R/Jtm0dhgjdJyn"
        "jel+ZKjM4kJF+tmKoHLbUsvMcb8Xsh2h3rMYwqCMY6hi/dLeUHn/z7IT9ZVbQpX2X6pknKvc/zwUekRW"
    )
)


def three_users():
    return np.array([[0.25 * i - j % 5 if j != 7 * i + 3 else 99 for j in range(100)] for i in range(3)])


def small_ratings(seed=0):
    """120 users: 100 rated jokes 31 to 70 and some others, 20 did not rate all of these."""
    rng = np.random.default_rng(seed)
    tastes, jokes = rng.normal(size=(120, 3)), rng.normal(size=(100, 3))
    ratings = np.clip(np.round(tastes @ jokes.T + rng.normal(size=(120, 100)), 2), -10, 10)
    unrated = rng.uniform(size=ratings.shape) < 0.6
    unrated[:, 30:70] = False
    unrated[100:, 30:70] = rng.uniform(size=(20, 40)) < 0.3
    return np.where(unrated, 99, ratings)


def csv_of(ratings):
    rows = ([(row != 99).sum(), *row] for row in ratings)
    return "".join(",".join(f"{value:g}" for value in row) + "\n" for row in rows).encode()


def zip_of(content, name="jester-data-1.csv"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


def publish(monkeypatch, ratings):
    """Let these ratings be those that the package takes for the published ones."""
    hundredths = np.rint(100 * ratings).astype("<i2")
    digest = hashlib.sha256(hundredths.tobytes()).hexdigest()
    monkeypatch.setattr(data, "PUBLISHED", data.Published(len(ratings), digest))


@pytest.fixture(autouse=True)
def apart(monkeypatch, tmp_path):
    """A process that knows no fit yet, with a cache folder of its own, and no data but what the test names."""
    monkeypatch.setattr(pipeline, "_models", {})
    monkeypatch.setenv("SOLID_BANDITS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SOLID_BANDITS_DATA", raising=False)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A file of 120 users that passes for the published one."""
    publish(monkeypatch, small_ratings())
    path = tmp_path / "jester-data-1.zip"
    path.write_bytes(zip_of(csv_of(small_ratings())))
    return path


def forget(monkeypatch):
    """As if in a new process."""
    monkeypatch.setattr(pipeline, "_models", {})


def no_fit(monkeypatch):
    def refuse(*_):
        raise AssertionError("fitted again")

    monkeypatch.setattr(pipeline, "fit", refuse)


def kept(tmp_path):
    return sorted((tmp_path / "cache").glob("*"))


# Reading


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("excel", [False, True])
def test_every_format_gives_the_same_ratings(monkeypatch, excel, packed):
    publish(monkeypatch, three_users())
    content = EXCEL if excel else csv_of(three_users())
    if packed:
        content = zip_of(content, "jester-data-1.xls" if excel else "jester-data-1.csv")
    assert (data.read(content, "file") == np.rint(100 * three_users())).all()


def edited(row, joke, value):
    ratings = small_ratings()
    ratings[row, joke] = value
    return ratings


WRONG = {
    "no table": (b"<html>Not found</html>", "not a table of numbers"),
    "nothing": (b"", "not a table of numbers"),
    "binary": (bytes(range(128, 256)) * 50, "not a table of numbers"),
    "words": (csv_of(small_ratings()).replace(b",99,", b",none,", 1), "not a table of numbers"),
    "columns": (csv_of(small_ratings()[:, :99]), "has 100 columns; .* have 101"),
    "hole": (csv_of(small_ratings()).replace(b",99,", b",,", 1), "no number in row 1"),
    "range": (csv_of(edited(4, 50, 10.5)), r"has 10\.5 in row 5, column 52; a rating is from -10 to 10"),
    "count": (csv_of(small_ratings()).replace(b"\n", b"\n1", 1), "jokes rated in row 2, which has"),
    "fewer users": (csv_of(small_ratings()[:-1]), "has 119 users; .* has 120"),
    "other numbers": (csv_of(edited(4, 50, 1.23)), "not those published"),
    "other user order": (csv_of(small_ratings()[::-1]), "not those published"),
    "empty zip": (zip_of(b"", "readme.txt"), "holds readme.txt; the Jester archive holds one"),
    "short zip": (zip_of(csv_of(small_ratings()))[:-40], "truncated or corrupt zip"),
    "short Excel": (EXCEL[:1500], "not a whole Excel sheet"),
    "other Excel": (EXCEL, "has 3 users"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_refused_and_leaves_no_fit(small, tmp_path, case):
    content, message = WRONG[case]
    small.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        jester.jester(small)
    assert str(small) in str(caught.value)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("packed", [False, True])
def test_no_truncated_file_passes(small, packed):
    whole = csv_of(small_ratings())
    ends = [m for m in range(len(whole)) if whole[m : m + 1] == b"\n"]
    if packed:
        whole = zip_of(whole)
        ends = [len(whole) - 1, len(whole) // 2]
    # The last newline may be missing: all numbers are there.
    lengths = {*np.linspace(1, len(whole) - 2, 40, dtype=int).tolist(), *(end + 1 for end in ends)} - {
        len(whole)
    }
    for length in lengths:
        with pytest.raises(ValueError, match="source 'file'"):
            data.read(whole[:length], "file")


def test_a_flipped_bit_never_changes_the_ratings(small):
    whole = small.read_bytes()
    refused = 0
    for position in np.linspace(0, len(whole) - 1, 200, dtype=int):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(position % 8)
        try:
            ratings = data.read(bytes(damaged), "file")
        except ValueError:
            refused += 1
        else:  # in what a zip file says of dates or of the system that wrote it
            assert (ratings == np.rint(100 * small_ratings())).all()
    assert refused > 150


# Where the file is


def test_the_file_is_named_or_in_the_folder_that_is_named(small, tmp_path, monkeypatch):
    by_file, by_folder = jester.jester(small), jester.jester(str(tmp_path))
    monkeypatch.setenv("SOLID_BANDITS_DATA", str(tmp_path))
    assert jester.jester().fingerprint == by_file.fingerprint == by_folder.fingerprint


def test_the_argument_goes_before_the_environment(small, tmp_path, monkeypatch):
    monkeypatch.setenv("SOLID_BANDITS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"SOLID_BANDITS_DATA is '.*nowhere', which is not there"):
        jester.jester()
    assert jester.jester(small, users_fraction=0.2).n_contexts == 20


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"source is '.*absent\.zip', which is not there"):
        jester.jester(tmp_path / "absent.zip")
    with pytest.raises(ValueError, match=r"holds no Jester ratings; put jester-data-1\.zip there"):
        jester.jester(tmp_path)
    with pytest.raises(ValueError, match="source must be a path, got 5"):
        jester.jester(5)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A web site with the files of a folder; the package looks there."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Quiet, directory=str(folder))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setattr(data, "ADDRESSES", (f"{address}/moved.zip", f"{address}/ratings.zip"))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def test_otherwise_it_is_downloaded_once(small, site, tmp_path, monkeypatch):
    small.rename(site / "ratings.zip")  # the first address answers "not found"
    first = jester.jester(users_fraction=0.2)
    (site / "ratings.zip").unlink()
    forget(monkeypatch)
    assert jester.jester(users_fraction=0.2).fingerprint == first.fingerprint
    assert (tmp_path / "cache" / "jester-data-1.zip").is_file()


def test_a_bad_download_is_refused_and_not_kept(small, site, tmp_path):
    (site / "ratings.zip").write_bytes(small.read_bytes()[:-40])
    with pytest.raises(ValueError, match="truncated or corrupt zip"):
        jester.jester()
    assert kept(tmp_path) == []
    small.rename(site / "ratings.zip")
    assert jester.jester(users_fraction=0.2).n_contexts == 20


def test_without_a_network_the_error_says_where_to_put_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(
        data, "ADDRESSES", ("http://127.0.0.1:9/ratings.zip",)
    )  # the discard port: nobody answers
    with pytest.raises(ValueError, match="could not be downloaded") as caught:
        jester.jester()
    for hint in ("http://127.0.0.1:9/ratings.zip", "source", "SOLID_BANDITS_DATA", "jester-data-1.zip"):
        assert hint in str(caught.value)


def test_without_the_extra_the_error_says_how_to_install_it(small, monkeypatch):
    monkeypatch.setitem(importlib.import_module("sys").modules, "sklearn.neural_network", None)
    with pytest.raises(ImportError, match=r"pip install 'solid-bandits\[jester\]'"):
        jester.jester(small)


# The fit


def naive_features(model, user, joke):
    """The last hidden layer's outputs for one pair, neuron by neuron, and a 1."""
    values = [*model.user_factors[user], *model.joke_factors[joke]]
    for weights, bias in (
        (model.first_weights, model.first_bias),
        (model.second_weights, model.second_bias),
    ):
        values = [
            max(0.0, sum(w * v for w, v in zip(column, values, strict=True)) + b)
            for column, b in zip(weights.T, bias, strict=True)
        ]
    return [*values, 1.0]


def test_features_and_theta_are_the_networks_last_layer(small, monkeypatch):
    networks = []

    class Recorder(neural_network.MLPRegressor):
        def partial_fit(self, X, y):
            self.shown = X
            networks.append(self)
            return super().partial_fit(X, y)

    monkeypatch.setattr(neural_network, "MLPRegressor", Recorder)
    model = jester.jester_model(small)
    users = [3, 99, 0]
    features = model.features(users)
    assert features.shape == (3, 40, 65)
    for i, j in ((0, 0), (1, 39), (2, 17)):
        assert features[i, j] == pytest.approx(naive_features(model, users[i], j), abs=1e-12)
    pairs = [[*model.user_factors[u], *joke] for u in users for joke in model.joke_factors]
    assert (features @ model.theta).ravel() == pytest.approx(networks[-1].predict(pairs), abs=1e-12)
    # Split by users: no rating of a held-out user was shown to the network, and every one of all others.
    shown = {row.tobytes() for row in np.ascontiguousarray(networks[-1].shown[:, :36])}
    others = np.setdiff1d(np.arange(model.n_users), model.held_out)
    assert shown == {model.user_factors[user].tobytes() for user in others}
    assert networks[-1].shown.shape == (75 * 40, 72)


def test_the_matrix_is_of_the_most_rated_jokes_and_those_who_rated_all(small):
    model = jester.jester_model(small)
    assert model.jokes.tolist() == list(range(31, 71))
    assert model.n_users == 100
    rewards = small_ratings()[:100, 30:70] / 10
    singular = np.linalg.svd(rewards, compute_uv=False)
    assert model.rmse == pytest.approx(np.sqrt((singular[36:] ** 2).sum() / rewards.size))
    assert np.mean(model.user_factors**2, axis=0) == pytest.approx(np.ones(36))
    assert np.mean(model.joke_factors**2, axis=0) == pytest.approx(np.ones(36))
    largest = np.abs(model.joke_factors).argmax(axis=0)
    assert (model.joke_factors[largest, np.arange(36)] > 0).all()  # the sign that the SVD leaves open
    held_out = model.held_out
    predicted = model.features(held_out) @ model.theta
    assert model.r2_held_out == pytest.approx(metrics.r2_score(rewards[held_out].ravel(), predicted.ravel()))


def test_the_problem_is_the_papers(small):
    problem = jester.jester(small, users_fraction=0.3)
    assert problem.features.shape == (30, 40, 65)
    assert (problem.features[:, :, -1] == 1).all()
    assert problem.features.min() >= 0
    assert problem.noise_std == 0.5
    assert problem.context_probs == pytest.approx(np.full(30, 1 / 30))


def test_the_seed_draws_the_users_and_the_fit_seed_the_fit(small, monkeypatch):
    first, other = (jester.jester(small, 0.3, seed) for seed in (1, 2))
    model = jester.jester_model(small)
    everyone = model.features(np.arange(model.n_users))
    for problem in (first, other):
        assert (problem.theta == model.theta).all()
        near = np.abs(everyone[None] - problem.features[:, None]).max(axis=(2, 3)) < 1e-12
        assert (near.sum(axis=1) == 1).all()  # each context is one user,
        assert (near.sum(axis=0) <= 1).all()  # and no user comes twice
    assert first.fingerprint != other.fingerprint
    assert jester.jester(small, 0.3, 1).fingerprint == first.fingerprint
    refitted = jester.jester(small, 0.3, 1, fit_seed=1)
    assert not np.allclose(refitted.theta, first.theta)
    assert (jester.jester_model(small, 1).held_out != model.held_out).any()


def test_a_fit_is_the_same_in_a_new_process_with_nothing_kept(small, monkeypatch, tmp_path):
    first = jester.jester(small)
    forget(monkeypatch)
    monkeypatch.setenv("SOLID_BANDITS_CACHE", str(tmp_path / "elsewhere"))
    assert jester.jester(small).fingerprint == first.fingerprint


def test_arguments_are_checked(small):
    for bad in ({"users_fraction": 0}, {"users_fraction": 1.1}, {"seed": -1}, {"fit_seed": -1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            jester.jester(small, **bad)
    with pytest.raises(ValueError, match=r"users_fraction is 0\.009, less than one of 100 users"):
        jester.jester(small, users_fraction=0.009)
    model = jester.jester_model(small)
    assert jester.jester(small, users_fraction=0.57).n_contexts == 57
    for bad in ([], [100], [-1], [0.5], [[1]]):
        with pytest.raises(ValueError, match="users"):
            model.features(bad)
    with pytest.raises(ValueError, match="read-only"):
        model.theta[0] = 1.0


# What is kept on disk


def test_a_fit_is_kept_for_the_process_and_for_the_next(small, monkeypatch, tmp_path):
    first = jester.jester(small)
    (file,) = kept(tmp_path)
    no_fit(monkeypatch)
    file.rename(tmp_path / "aside")
    assert jester.jester(small).fingerprint == first.fingerprint
    (tmp_path / "aside").rename(file)
    forget(monkeypatch)
    assert jester.jester(small).fingerprint == first.fingerprint
    assert repr(jester.jester_model(small)).startswith("JesterModel(users=100, jokes=40, dim=65")


def damaged_by_a_bit(content):
    # In the middle, which is in the users' factors.
    return (
        content[: len(content) // 2]
        + bytes([content[len(content) // 2] ^ 1])
        + content[len(content) // 2 + 1 :]
    )


def rewritten(content):
    """A whole .npz, but of other numbers."""
    with np.load(io.BytesIO(content)) as archive:
        fields = dict(archive)
    fields["theta"] = fields["theta"] + 1
    file = io.BytesIO()
    np.savez(file, **fields)
    return file.getvalue()


@pytest.mark.parametrize(
    "damage",
    [lambda content: b"", lambda content: content[: len(content) // 2], damaged_by_a_bit, rewritten],
    ids=["empty", "truncated", "a bit", "rewritten"],
)
def test_a_damaged_fit_is_made_again(small, monkeypatch, tmp_path, damage):
    first = jester.jester(small)
    (file,) = kept(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    forget(monkeypatch)
    assert jester.jester(small).fingerprint == first.fingerprint
    assert pipeline._load(file, next(iter(pipeline._models))).theta.tolist() == first.theta.tolist()


def test_a_fit_is_not_taken_for_another(small, monkeypatch, tmp_path):
    jester.jester(small)
    (file,) = kept(tmp_path)
    jester.jester(small, fit_seed=1)
    (second,) = set(kept(tmp_path)) - {file}
    second.write_bytes(file.read_bytes())
    forget(monkeypatch)
    assert jester.jester_model(small, 0).theta.tolist() != jester.jester_model(small, 1).theta.tolist()


def test_new_versions_fit_anew(small, monkeypatch, tmp_path):
    jester.jester(small)
    forget(monkeypatch)
    monkeypatch.setattr(pipeline, "_version", lambda package: f"{package} of tomorrow")
    jester.jester(small)
    assert len(kept(tmp_path)) == 2


def test_a_file_that_goes_bad_is_refused_although_its_fit_is_kept(small):
    jester.jester(small)
    small.write_bytes(small.read_bytes()[:-40])
    with pytest.raises(ValueError, match="truncated or corrupt zip"):
        jester.jester(small)


def test_a_folder_that_cannot_be_written_costs_the_cache_only(small, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SOLID_BANDITS_CACHE", str(tmp_path / "file" / "folder"))
    with pytest.warns(RuntimeWarning, match="name a writable folder in SOLID_BANDITS_CACHE"):
        problem = jester.jester(small)
    assert problem.dim == 65


def test_a_fit_is_there_whole_or_not_at_all(small, monkeypatch, tmp_path):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pipeline.os, "replace", full_disk)
    with pytest.warns(RuntimeWarning, match="No space left"):
        jester.jester(small)
    assert kept(tmp_path) == []


# The published ratings


@needs_ratings
def test_the_published_matrix_is_the_papers():
    ratings = data.read((REAL / "jester-data-1.zip").read_bytes(), "jester-data-1.zip")
    jokes, rewards = fit.dense(ratings, 40)
    assert rewards.shape == (19_181, 40)
    assert len(jokes) == 40
    assert (10 * rewards.min(), 10 * rewards.max()) == pytest.approx((-9.95, 9.71), abs=1e-12)
    rmse = fit.factorise(rewards, 36)[2]
    assert rmse == pytest.approx(0.0993464926, abs=5e-11)


@needs_ratings
def test_the_published_zip_truncated_is_refused():
    content = (REAL / "jester-data-1.zip").read_bytes()
    with pytest.raises(ValueError, match="truncated or corrupt zip"):
        data.read(content[: len(content) // 2], "file")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        lines = archive.read("jester-data-1.csv").splitlines(keepends=True)
    with pytest.raises(ValueError, match=r"has 24,982 users; .* has 24,983"):
        data.read(b"".join(lines[:-1]), "file")


@needs_ratings
def test_one_epoch_on_the_published_ratings_predicts_held_out_users():
    # The full fit has ten epochs and reaches 0.95 (studies/jester/data.py); one is what a test can afford.
    model = pipeline.model_for(REAL, fit.Settings(epochs=1))
    assert len(model.held_out) == 19_181 - round(0.75 * 19_181)
    assert model.r2_held_out > 0.92
    users = np.sort(np.random.default_rng(0).choice(19_181, 191, replace=False))
    problem = model.problem(users)
    assert problem.features.shape == (191, 40, 65)
    assert np.isfinite(problem.gaps).all()
    assert np.abs(problem.means).max() < 3  # ratings over 10, not ratings


def test_an_archive_that_holds_too_much_is_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "jester-data-1.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.csv", "w") as member:
        for _ in range(101):
            member.write(bytes(2**20))
    with pytest.raises(ValueError, match="holds 101 MiB, more than the limit of 100 MiB"):
        jester.jester(path)
