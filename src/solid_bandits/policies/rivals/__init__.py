"""Algorithms that SOLID is compared with: those of its paper, SOLID on streams, and later ones with theorems."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits.policies.rivals.aoids import AOIDS as AOIDS
    from solid_bandits.policies.rivals.e4 import E4 as E4
    from solid_bandits.policies.rivals.end_of_optimism import EndOfOptimism as EndOfOptimism
    from solid_bandits.policies.rivals.falcon import FALCON as FALCON
    from solid_bandits.policies.rivals.feel_good import FeelGoodTS as FeelGoodTS
    from solid_bandits.policies.rivals.linimed import LinIMED as LinIMED
    from solid_bandits.policies.rivals.linmed import LinMED as LinMED
    from solid_bandits.policies.rivals.oam import OAM as OAM
    from solid_bandits.policies.rivals.ossb import OSSB as OSSB
    from solid_bandits.policies.rivals.spl import SPL as SPL
    from solid_bandits.policies.rivals.squarecb import SquareCB as SquareCB
    from solid_bandits.policies.rivals.streaming.policy import StreamingSolid as StreamingSolid
    from solid_bandits.policies.rivals.ucb1 import UCB1 as UCB1

_HERE = "policies.rivals"
_HOMES = {
    "AOIDS": f"{_HERE}.aoids",
    "E4": f"{_HERE}.e4",
    "EndOfOptimism": f"{_HERE}.end_of_optimism",
    "FALCON": f"{_HERE}.falcon",
    "FeelGoodTS": f"{_HERE}.feel_good",
    "LinIMED": f"{_HERE}.linimed",
    "LinMED": f"{_HERE}.linmed",
    "OAM": f"{_HERE}.oam",
    "OSSB": f"{_HERE}.ossb",
    "SPL": f"{_HERE}.spl",
    "SquareCB": f"{_HERE}.squarecb",
    "StreamingSolid": f"{_HERE}.streaming.policy",
    "UCB1": f"{_HERE}.ucb1",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
