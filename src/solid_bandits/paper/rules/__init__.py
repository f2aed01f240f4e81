"""The rules by which claims are judged, by name. Nothing is simulated here."""

# Imported because they register rules, in the order in which documents explain them.
from solid_bandits.paper.rules import within as within  # isort: skip
from solid_bandits.paper.rules import across as across  # isort: skip
from solid_bandits.paper.rules import others as others  # isort: skip
from solid_bandits.paper.rules.rule import RULES

__all__ = ["RULES"]
