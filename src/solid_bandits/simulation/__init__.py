"""Many runs of many policies: the plan, its blocks of runs, and the one way of playing them.

`play` does the tasks of plans and hands what they give to sinks: `simulate` keeps all of it in memory, `summarise`
sums it up, experiments keep it on disk.
"""

from solid_bandits.simulation.block import Block, Played, play_block
from solid_bandits.simulation.plan import Plan
from solid_bandits.simulation.playing import Extra, Game, Progress, Sink, play

__all__ = ["Block", "Extra", "Game", "Plan", "Played", "Progress", "Sink", "play", "play_block"]
