"""The rules by which claims are judged, by name. Nothing is simulated here."""

from solid_bandits.experiments.rules import allocation, differences, growth, linear_runs, ratios, times
from solid_bandits.experiments.rules.rule import Rule

# In the order in which documents explain them.
RULES: dict[str, Rule] = {
    "less": differences.LESS,
    "more": differences.MORE,
    "similar": ratios.SIMILAR,
    "different": ratios.DIFFERENT,
    "between": differences.BETWEEN,
    "below": differences.BELOW,
    "at most": differences.AT_MOST,
    "often": differences.OFTEN,
    "slowing": differences.SLOWING,
    "growing": growth.GROWING,
    "not growing": growth.NOT_GROWING,
    "factor below": growth.FACTOR_BELOW,
    "in proportion": growth.IN_PROPORTION,
    "grows more": growth.GROWS_MORE,
    "gap grows": growth.GAP_GROWS,
    "linear runs": linear_runs.LINEAR_RUNS,
    "allocation": allocation.ALLOCATION,
    "slower": times.SLOWER,
}
