"""Logs of decisions as tables: their columns, files, and imports from elsewhere. Nothing is decided here."""

from solid_bandits.logs.dsjson import read_dsjson, write_dsjson
from solid_bandits.logs.files import delete, read, write
from solid_bandits.logs.foreign import from_table
from solid_bandits.logs.named import values, with_features
from solid_bandits.logs.schema import COLUMNS

__all__ = [
    "COLUMNS",
    "delete",
    "from_table",
    "read",
    "read_dsjson",
    "values",
    "with_features",
    "write",
    "write_dsjson",
]
