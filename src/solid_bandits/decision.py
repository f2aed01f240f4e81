"""A decision as an agent gives it: the arm, its probabilities, and what learning from its reward needs."""

from typing import NamedTuple

from solid_bandits._types import Floats


class Decision(NamedTuple):
    """What an agent decided, and what it needs to learn from the reward.

    Example:
        >>> import solid_bandits as sb
        >>> agent = sb.Agent(sb.EpsilonGreedy(epsilon=0.1), dim=2, seed=0)
        >>> decision = agent.decide([[1.0, 0.0], [0.0, 1.0]])
        >>> decision.arm, round(decision.probability, 3)
        (0, 0.95)
        >>> agent.learn(decision, reward=1.0)
    """

    arm: int
    probability: float | None
    """Of this arm, under the policy as it was; None where `Agent(..., probabilities=True)` was needed and not given."""
    probabilities: Floats | None
    """Of all arms, shape (arms,): the distribution that the arm was drawn from; None as above."""
    explored: bool
    """Whether the policy gave up some of what it expects now to learn something."""
    features: Floats
    """Of this arm, shape (dim,)."""
    context: int | None
    """The context of the table, where the agent has one."""
    number: int | None = None
    """Which decision of the agent this was, counted from 1, where evidence fades (`half_life`): a reward that comes
    late weighs what its decision weighs."""

    def __eq__(self, other: object) -> bool:
        """Whether this is the same decision: two of the same arm are two, also in a list of open ones."""
        return self is other

    def __ne__(self, other: object) -> bool:
        """Whether this is another decision."""
        return self is not other

    def __hash__(self) -> int:
        """By identity, as equality is."""
        return id(self)
