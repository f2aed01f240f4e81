"""What is played in the study, and what it is told."""

from dataclasses import dataclass
from typing import NamedTuple

import solid_bandits as sb
from solid_bandits.estimation.evidence import Search
from solid_bandits.policies.contract import Policy

LINTS = "LinTS (told sigma)"
"""What everything is measured by: posterior scale, ridge 1."""
OURS, CONTROL = "RandUCB", "LinTS (evidence)"
"""What is judged; the fair control, with the same knowledge and other draws."""


@dataclass(frozen=True)
class Tried(sb.RandUCB):
    """RandUCB with another search for its ridge."""

    start_ridge: float = 1.0
    rounds: int = 1
    first: int = 1
    caution: float = 0.0

    def make_regression(self, setting, norms=False, relative=False):
        """A regression with this search."""
        regression = super().make_regression(setting, norms, relative)
        search = Search(float(self.start_ridge), int(self.rounds), int(self.first), float(self.caution))
        return regression._replace(params=regression.params._replace(search=search))


class Player(NamedTuple):
    """A policy, and whether it is told σ."""

    policy: Policy
    told: bool


def solid(family, problem):
    """SOLID as the paper plays problems of this kind."""
    return sb.Solid() if family.kind == "toy" else sb.Solid.paper_random(problem.n_arms)


CHOSEN_LINUCB = sb.LinUCB(scale=0.5, ridge="evidence")
"""By the tuning (plan.md), before anything was held out."""

COMPARED = {
    LINTS: lambda family, problem: Player(sb.LinTS(), True),
    OURS: lambda family, problem: Player(sb.RandUCB(), False),
    CONTROL: lambda family, problem: Player(sb.LinTS(ridge="evidence"), False),
    "VIDS": lambda family, problem: Player(sb.VIDS(), False),
    "LinUCB (tuned)": lambda family, problem: Player(CHOSEN_LINUCB, True),
    "LinUCB": lambda family, problem: Player(sb.LinUCB(radius="paper"), True),
    "Greedy": lambda family, problem: Player(sb.Greedy(), True),
    "SOLID": lambda family, problem: Player(solid(family, problem), True),
    "AO-IDS": lambda family, problem: Player(sb.rivals.AOIDS(), True),
}
"""Label -> from family and problem to a player. 0/1 rewards: who is told σ is told the largest, 0.5."""

FINITE_ONLY = ("SOLID", "AO-IDS")
"""They plan over a table; not played where contexts never come twice."""
