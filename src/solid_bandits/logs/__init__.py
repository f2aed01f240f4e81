"""Logs of decisions as tables: their columns, files, and those that come from elsewhere. Nothing is decided here."""

from solid_bandits.logs.dsjson import read_dsjson, write_dsjson
from solid_bandits.logs.files import delete, read, write
from solid_bandits.logs.foreign import crossed, from_table
from solid_bandits.logs.schema import COLUMNS

__all__ = [
    "COLUMNS",
    "crossed",
    "delete",
    "from_table",
    "read",
    "read_dsjson",
    "write",
    "write_dsjson",
]
