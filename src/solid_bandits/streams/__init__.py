"""Rounds that need not repeat: generated, or from data frames and files."""

from typing import TYPE_CHECKING

from solid_bandits._internal.lazy import lazy

if TYPE_CHECKING:
    from solid_bandits.streams.base import Stream as Stream
    from solid_bandits.streams.decisions import Record as Record
    from solid_bandits.streams.files import from_file as from_file
    from solid_bandits.streams.finite import of_problem as of_problem
    from solid_bandits.streams.frame import classification as classification
    from solid_bandits.streams.frame import from_frame as from_frame
    from solid_bandits.streams.generated import GaussianStream, JointStream, SparseStream
    from solid_bandits.streams.rounds import Rounds as Rounds

    gaussian, joint, sparse = GaussianStream, JointStream, SparseStream

_HOMES = {
    "Record": "streams.decisions",
    "Rounds": "streams.rounds",
    "Stream": "streams.base",
    "classification": "streams.frame",
    "from_file": "streams.files",
    "from_frame": "streams.frame",
    "gaussian": "streams.generated:GaussianStream",
    "joint": "streams.generated:JointStream",
    "of_problem": "streams.finite",
    "sparse": "streams.generated:SparseStream",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy(__name__, _HOMES)
