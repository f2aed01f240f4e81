"""Exploring to find out which arm is best in each context, with probability 1 - δ, after few samples."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits.identification.even import Even as Even
    from solid_bandits.identification.explorer import Explorer as Explorer
    from solid_bandits.identification.frank_wolfe import FrankWolfe as FrankWolfe
    from solid_bandits.identification.lazy_tracking import LazyTrackAndStop as LazyTrackAndStop
    from solid_bandits.identification.lingame import LinGame as LinGame
    from solid_bandits.identification.lingape import LinGapE as LinGapE
    from solid_bandits.identification.search import Identified as Identified
    from solid_bandits.identification.search import identify as identify

_HERE = "identification"
_HOMES = {
    "Even": f"{_HERE}.even",
    "Explorer": f"{_HERE}.explorer",
    "FrankWolfe": f"{_HERE}.frank_wolfe",
    "Identified": f"{_HERE}.search",
    "LazyTrackAndStop": f"{_HERE}.lazy_tracking",
    "LinGame": f"{_HERE}.lingame",
    "LinGapE": f"{_HERE}.lingape",
    "identify": f"{_HERE}.search",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
