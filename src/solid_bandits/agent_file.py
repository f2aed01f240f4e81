"""An agent as one JSON file of plain numbers: what policy, in what setting, with what state, written by which version."""

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from solid_bandits import _check
from solid_bandits._types import Floats, Plain
from solid_bandits._files import write_whole
from solid_bandits.policies.catalogue import CLASSES
from solid_bandits.policies.contract import Policy
from solid_bandits.setting import Setting, make_setting, make_table

PathLike = str | os.PathLike[str]
KIND = "solid-bandits agent"
VERSION = 1
"""Of the format: raised when a state of before would be read wrongly."""


class AgentFile(NamedTuple):
    """What the file says."""

    policy: Policy
    setting: Setting
    contexts: Floats | None
    """Features of the table, where the agent has one."""
    state: Plain
