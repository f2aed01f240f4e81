"""What a bandit answers, here and over the network. Nothing here loads a compiler."""

from typing import NamedTuple

from solid_bandits._types import Floats
from solid_bandits.live.memory import Arm, Record


class Choice(NamedTuple):
    """What a bandit decided.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> choice = bandit.decide([[1.0, 0.0], [0.0, 1.0]], arms=["tea", "coffee"], event_id="visit-1")
        >>> choice.event_id, choice.arms, choice.probability
        ('visit-1', ('tea', 'coffee'), 0.5)
    """

    event_id: str
    arm: Arm
    """The chosen one, as the caller named it."""
    probability: float
    """With which it was chosen."""
    arms: tuple[Arm, ...]
    """Those on offer."""
    probabilities: Floats
    """Of these, in the same order: the distribution that the arm was drawn from."""
    explored: bool
    again: bool
    """Whether the id was known: this is what was decided then."""


class Receipt(NamedTuple):
    """What became of a reward.

    Example:
        >>> import solid_bandits as sb
        >>> bandit = sb.Bandit(sb.LinTS(), dim=2, noise_std=0.5, seed=0)
        >>> choice = bandit.decide([[1.0, 0.0], [0.0, 1.0]], event_id="visit-1")
        >>> bandit.learn("visit-1", reward=1.0).counted
        True
        >>> bandit.learn("visit-1", reward=0.0).message
        "event_id 'visit-1' was learned with reward 1; reward 0 was not taken in"
    """

    event_id: str
    counted: bool
    """Whether it was taken in."""
    reward: float | None
    """The reward that counts for this id; None if it expired without one."""
    message: str
    """In words."""


def choice_of(record: Record, again: bool) -> Choice:
    """What was decided, as its caller is told."""
    probability = record.probabilities[record.place].item()
    return Choice(
        record.event_id, record.arm, probability, record.arms, record.probabilities, record.explored, again
    )
