"""Rounds that need not repeat: generated, or from data frames and files."""

from solid_bandits.streams.base import Stream
from solid_bandits.streams.decisions import Record
from solid_bandits.streams.files import from_file
from solid_bandits.streams.finite import of_problem
from solid_bandits.streams.frame import classification, from_frame
from solid_bandits.streams.generated import GaussianStream, JointStream, SparseStream
from solid_bandits.streams.rounds import Rounds

gaussian, sparse, joint = GaussianStream, SparseStream, JointStream

__all__ = [
    "Record",
    "Rounds",
    "Stream",
    "classification",
    "from_file",
    "from_frame",
    "gaussian",
    "joint",
    "of_problem",
    "sparse",
]
