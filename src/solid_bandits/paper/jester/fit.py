"""Features from Jester's ratings: the dense matrix, its factors, the network ("Real Dataset" in the appendix)."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from solid_bandits._internal.types import Floats, Ints
from solid_bandits._internal.wording import number
from solid_bandits.core.problem import Problem
from solid_bandits.paper.jester import data as data

# The paper gives the noise, 0.5, but not the unit of rewards. Ratings over 10 are from -1 to 1; raw ratings, from -10
# to 10, would leave next to no noise.
_RATING_SCALE = 10.0
_NOISE_STD = 0.5


@dataclass(frozen=True)
class Settings:
    """Everything the fit depends on besides the ratings; the defaults are the paper's where it states them."""

    seed: int = 0
    jokes: int = 40
    rank: int = 36
    hidden: int = 64
    train_share: float = 0.75
    epochs: int = 10
    """Number of epochs; not in the paper. Ten, with scikit-learn's default step and batch, reach the paper's R² of 0.95
    on the held-out users."""


@dataclass(frozen=True, eq=False, repr=False)
class JesterModel:
    """Jester's users and jokes as a linear model: factors of the ratings, and a network from them to features.

    Example:
        >>> from solid_bandits.paper import jester
        >>> model = jester.jester_model()  # doctest: +SKIP
        >>> model.problem([0, 1, 2]).n_contexts  # doctest: +SKIP
        3
    """

    jokes: Ints
    """The jokes that are arms, by Jester's numbers, which start at 1; shape (40,)."""
    user_factors: Floats
    """Factors of the users, shape (19181, 36); each column has mean square 1."""
    joke_factors: Floats
    """Factors of the jokes, shape (40, 36); each column has mean square 1."""
    first_weights: Floats
    """Weights of the first hidden layer, shape (72, 64): for factors of the user, then of the joke."""
    first_bias: Floats
    second_weights: Floats
    second_bias: Floats
    theta: Floats
    """θ*: the last layer's weights, then its bias; shape (65,)."""
    held_out: Ints
    """Indices of the held-out users, a quarter of all, whose ratings the network was not fitted to."""
    rmse: float
    """Root mean square error of the factorisation, over all users, in units of reward (ratings over 10)."""
    r2_train: float
    """R² of the network on the users it was fitted to."""
    r2_held_out: float
    """R² of the network on the held-out users."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False  # one model is shared by all callers in the process

    @property
    def n_users(self) -> int:
        """Number of users, 19,181."""
        return self.user_factors.shape[0]

    @property
    def dim(self) -> int:
        """The feature dimension d = 65: the hidden units, and a constant 1 for the bias."""
        return self.theta.shape[0]

    def features(self, users: ArrayLike) -> Floats:
        """Return φ(x, a) for these users, shape (users, 40, 65): the last hidden layer's outputs, then a 1.

        Computed on demand, because the features of all users take 400 MB.
        """
        chosen = self._users(users)
        n_jokes, rank = self.joke_factors.shape
        # The first layer is a sum of a user's part and a joke's part, so their factors need not be paired up.
        of_users = self.user_factors[chosen] @ self.first_weights[:rank]
        of_jokes = self.joke_factors @ self.first_weights[rank:] + self.first_bias
        first = np.maximum(of_users[:, None, :] + of_jokes, 0).reshape(-1, of_jokes.shape[1])
        second = np.maximum(first @ self.second_weights + self.second_bias, 0)
        result = np.ones((len(chosen), n_jokes, self.dim))
        result[:, :, :-1] = second.reshape(len(chosen), n_jokes, -1)
        return result

    def problem(self, users: ArrayLike) -> Problem:
        """Return the bandit problem with these users, equally likely, as contexts and the jokes as arms."""
        return Problem(self.features(users), self.theta, noise_std=_NOISE_STD)

    def _users(self, users: ArrayLike) -> Ints:
        chosen = np.asarray(users)
        if chosen.ndim != 1 or chosen.size == 0 or not np.issubdtype(chosen.dtype, np.integer):
            raise ValueError(
                f"users has shape {chosen.shape} and type {chosen.dtype}; give a list of whole numbers"
            )
        if chosen.min() < 0 or chosen.max() >= self.n_users:
            raise ValueError(
                f"users goes from {chosen.min()} to {chosen.max()}; give indices from 0 to {self.n_users - 1}"
            )
        return chosen.astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"JesterModel(users={self.n_users}, jokes={len(self.jokes)}, dim={self.dim}, "
            f"rmse={number(self.rmse)}, R² held out={number(self.r2_held_out)})"
        )


def fit(ratings: Ints, settings: Settings) -> JesterModel:
    """Fit the model to the published ratings, in hundredths.

    One thread is used: several may sum in a different order, and training amplifies the last bit.
    """
    with data.extra("threadpoolctl").threadpool_limits(1):
        jokes, rewards = dense(ratings, settings.jokes)
        users, joke_factors, rmse = factorise(rewards, settings.rank)
        rng = np.random.default_rng(settings.seed)
        order = rng.permutation(len(rewards))
        n_train = round(settings.train_share * len(rewards))
        train, held_out = np.sort(order[:n_train]), np.sort(order[n_train:])
        network = data.extra("sklearn.neural_network").MLPRegressor(
            hidden_layer_sizes=(settings.hidden, settings.hidden), random_state=int(rng.integers(2**31))
        )
        pairs = np.hstack([np.repeat(users[train], len(jokes), axis=0), np.tile(joke_factors, (n_train, 1))])
        targets = rewards[train].ravel()
        # `fit` would stop by the training loss, or warn that it did not.
        for _ in range(settings.epochs):
            network.partial_fit(pairs, targets)
        first, second, last = network.coefs_
        biases = network.intercepts_
        theta = np.append(last[:, 0], biases[2])
        parts = (jokes, users, joke_factors, first, biases[0], second, biases[1], theta, held_out)
        model = JesterModel(*parts, rmse, math.nan, math.nan)
        scores = [_r2(model, chosen, rewards[chosen]) for chosen in (train, held_out)]
        return JesterModel(*parts, rmse, *scores)


def dense(ratings: Ints, n_jokes: int) -> tuple[Ints, Floats]:
    """Return the most-rated jokes, numbered from 1, and the rewards of the users who rated all of them.

    The ratings are in hundredths; a reward is a rating over 10.
    """
    rated = ratings <= 1000
    most_rated = np.argsort(-rated.sum(axis=0), kind="stable")[:n_jokes]
    jokes = np.sort(most_rated)
    everyone = ratings[rated[:, jokes].all(axis=1)]
    return (jokes + 1).astype(np.int64), everyone[:, jokes] / 100 / _RATING_SCALE


def factorise(rewards: Floats, rank: int) -> tuple[Floats, Floats, float]:
    """Return factors of users and of jokes by the truncated SVD, scaled to columns of mean square 1, and the RMSE.

    The network's initial weights assume inputs of one size, and losing the singular values does not matter to it. A
    singular vector is known only up to its sign: the joke's largest entry is made positive.
    """
    left, values, right = np.linalg.svd(rewards, full_matrices=False)
    left, values, right = left[:, :rank], values[:rank], right[:rank]
    rmse = float(np.sqrt(np.mean((rewards - (left * values) @ right) ** 2)))
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    users = left * (signs * math.sqrt(left.shape[0]))
    jokes = right.T * (signs * math.sqrt(right.shape[1]))
    return np.ascontiguousarray(users), np.ascontiguousarray(jokes), rmse


def _r2(model: JesterModel, users: Ints, rewards: Floats) -> float:
    # In pieces, because the features of all users at once take 400 MB.
    pieces = np.array_split(users, math.ceil(len(users) / 1000))
    predicted = np.concatenate([model.features(piece) @ model.theta for piece in pieces])
    return float(1 - np.sum((rewards - predicted) ** 2) / np.sum((rewards - rewards.mean()) ** 2))
