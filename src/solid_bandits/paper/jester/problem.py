"""The problem of the paper's last experiment ("Real Dataset" in the appendix): jokes for Jester's users."""

import contextlib
import hashlib
import json
import math
import os
import warnings
from dataclasses import asdict, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from solid_bandits._internal import checks, extras, files
from solid_bandits.core.problem import Problem
from solid_bandits.paper.jester import data as data
from solid_bandits.paper.jester.fit import JesterModel, Settings, fit

# Version of the fit. Increase it with any change that alters the result: older fits on disk are then ignored.
_PIPELINE = 1


def jester(
    source: str | os.PathLike[str] | None = None,
    users_fraction: float = 0.01,
    seed: int = 0,
    *,
    fit_seed: int = 0,
) -> Problem:
    """Draw the paper's real-data problem: 191 random users of Jester as contexts, 40 jokes as arms, d = 65.

    A network on factors of users and jokes is fitted to the ratings over 10 (`jester_model`, which fits once and keeps
    the fit). The outputs of its last hidden layer are the features, its last layer is θ*, and the noise has σ = 0.5.
    Needs the extra: pip install 'solid-bandits[jester]'.

    Args:
        source: the Jester ratings, `jester-data-1.zip` (or the CSV or Excel file in it), or the folder it is in. If
            None, the folder that the environment variable SOLID_BANDITS_DATA names is searched; if that is not set, the
            ratings are downloaded from the publisher.
        users_fraction: the share of the 19,181 users that are contexts, rounded down to whole users.
        seed: seed that draws the users. For a new problem in each run, give each run its own seed.
        fit_seed: seed that draws the held-out users, the network's initial weights and the order of its training.

    Raises:
        ValueError: the file is not there, is corrupt or truncated, or holds other numbers than those published.

    Example:
        >>> from solid_bandits.paper import jester
        >>> problem = jester.jester(seed=0)  # doctest: +SKIP
        >>> problem.features.shape  # doctest: +SKIP
        (191, 40, 65)

    Reference: the appendix on experiments, "Real Dataset"; Goldberg, Roeder, Gupta and Perkins, Eigentaste: A Constant
    Time Collaborative Filtering Algorithm, Information Retrieval 4(2), 2001, for the ratings.
    """
    fraction = checks.number("users_fraction", users_fraction, above=0, most=1)
    seed = checks.integer("seed", seed, least=0)
    model = jester_model(source, fit_seed)
    count = math.floor(fraction * model.n_users + 1e-9)  # floating point has 0.57 * 100 < 57
    if count == 0:
        raise ValueError(
            f"users_fraction is {users_fraction!r}, less than one of {model.n_users:,} users; "
            f"give at least {1 / model.n_users:.2g}"
        )
    users = np.random.default_rng(seed).choice(model.n_users, count, replace=False)
    return model.problem(np.sort(users))


def jester_model(source: str | os.PathLike[str] | None = None, fit_seed: int = 0) -> JesterModel:
    """Fit the model behind `jester`, or load it if this process or the cache folder has it.

    The 40 most-rated jokes and the users who rated all of them make a matrix of 19,181 × 40; its singular vectors of
    rank 36 are the factors of users and jokes; a 64 × 64 ReLU network learns the ratings of 75% of the users from
    them. A stored fit is identified by the content of the ratings file, the settings of the fit and the versions of
    NumPy and scikit-learn. The cache folder is the platform's, or the one that the environment variable
    SOLID_BANDITS_CACHE names.

    Args:
        source: the ratings, as in `jester`.
        fit_seed: seed that draws the held-out users, the network's initial weights and the order of its training.

    Raises:
        ValueError: as in `jester`.

    Example:
        >>> from solid_bandits.paper import jester
        >>> model = jester.jester_model()  # doctest: +SKIP
        >>> model.n_users  # doctest: +SKIP
        19181
    """
    return model_for(source, Settings(seed=checks.integer("fit_seed", fit_seed, least=0)))


_models: dict[str, JesterModel] = {}


def model_for(source: str | os.PathLike[str] | None, settings: Settings) -> JesterModel:
    """Return `jester_model` with every setting free, for tests and studies."""
    where = data.locate(source)
    try:
        content = files.read_bytes(where.path, data.LARGEST)
    except OSError as error:
        raise ValueError(
            f"source {os.fspath(where.path)!r} cannot be read ({error.strerror or error})"
        ) from None
    # Hashed at every call, which takes some milliseconds, so that a file that changes is noticed.
    key = _key(content, settings)
    if key not in _models:
        kept = data.cache_folder() / f"jester-{key[:32]}.npz"
        model = _load(kept, key)
        if model is None:
            try:
                ratings = data.read(content, os.fspath(where.path))
            except ValueError:
                if where.downloaded:
                    where.path.unlink(missing_ok=True)  # otherwise every later call would find it
                raise
            model = fit(ratings, settings)
            _save(kept, key, model)
        _models[key] = model
    return _models[key]


def _key(content: bytes, settings: Settings) -> str:
    parts = {
        "ratings": hashlib.sha256(content).hexdigest(),
        "published": data.PUBLISHED.digest,
        "settings": asdict(settings),
        "pipeline": _PIPELINE,
        "versions": {name: _version(name) for name in ("numpy", "scikit-learn")},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise extras.MissingExtraError(extras.line("sklearn", "the Jester problem")) from None


_FIELDS = tuple(one.name for one in fields(JesterModel))


def _save(path: Path, key: str, model: JesterModel) -> None:
    arrays = {name: np.asarray(getattr(model, name)) for name in _FIELDS}
    # Written under another name first, so that a killed process, or two at once, leave no half-written fit.
    draft = path.with_name(f"{path.stem}-{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, digest=np.array(_digest(key, arrays)), **arrays)  # type: ignore[arg-type]
        os.replace(draft, path)
    except OSError as error:
        warnings.warn(
            f"the Jester fit could not be kept in {os.fspath(path.parent)!r} ({error.strerror or error}): the next "
            f"process will fit again; name a writable folder in {data.CACHE_VARIABLE}",
            RuntimeWarning,
            stacklevel=4,
        )
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def _load(path: Path, key: str) -> JesterModel | None:
    """Return the fit stored at `path`; None if there is none or it is damaged."""
    try:
        kept = files.read_archive(files.read_bytes(path), {**dict.fromkeys(_FIELDS, "biuf"), "digest": "U"})
        arrays = {name: kept[name] for name in _FIELDS}
        digest = str(kept["digest"])
    except (OSError, ValueError, KeyError):
        return None
    if digest != _digest(key, arrays):
        return None
    numbers: list[Any] = [values if values.ndim else float(values) for values in arrays.values()]
    return JesterModel(*numbers)


def _digest(key: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(key.encode())
    for name, values in arrays.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
