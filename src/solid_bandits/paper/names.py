"""What the paper's experiments are called, and the scales at which they are played."""

SCALES = ("quick", "paper")
OWN = "own"
"""The scale of results of a user's own file, whichever of the two it was played at."""

# In the order of the paper; `reproduce --list` and `reproduce all` follow it.
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
"""Those that `all` leaves out: they need data that is not part of the package, and hours at the paper's scale."""

ALL = tuple(name for name in NAMES if name not in ON_THEIR_OWN)
"""What `all` means."""

AFTERWARDS = ("toy-pulls",)
"""Added after the rule that ranks the readings was committed."""

COUNTED = tuple(name for name in ALL if name not in AFTERWARDS)
"""Those whose sentences count in the ranking of the readings."""
