"""Names of the paper's experiments, and of the scales at which they are played."""

SCALES = ("quick", "paper")
OWN = "own"
"""The scale of results of a user's own file, at whichever of the two scales it was played."""

# Listed in the order of the paper, which `reproduce --list` and `reproduce all` follow.
NAMES = (
    "toy",
    "toy-pulls",
    "random",
    "ablation-z0",
    "ablation-lambda1",
    "ablation-policy-step",
    "ablation-multiplier-step",
    "ablation-schedule",
    "ablation-reset",
    "ablation-tracking",
    "ablation-exploit-test",
    "end-of-optimism",
    "asymptotics",
    "asymptotics-random",
    "jester",
)

ON_THEIR_OWN = ("jester",)
"""Experiments that `all` leaves out: they need data that the package does not contain, and hours at the paper's
scale."""

ALL = tuple(name for name in NAMES if name not in ON_THEIR_OWN)
"""Experiments that `all` stands for."""

AFTERWARDS = ("toy-pulls",)
"""Experiments added after the rule that ranks the readings was committed."""

COUNTED = tuple(name for name in ALL if name not in AFTERWARDS)
"""Experiments whose sentences count in the ranking of the readings."""
