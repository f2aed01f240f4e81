"""A policy's decisions as plain numbers, for a scorer that is not Python: what it takes to decide, and not to learn.

All numbers are those of the next decision: it is counted in t, and evidence has faded by it. examples/edge has a scorer
in JavaScript.
"""

import copy
import hashlib
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from solid_bandits._internal.decoding import encode
from solid_bandits._internal.files import first_line, path_of, write_bytes
from solid_bandits._internal.types import Floats, Plain
from solid_bandits.core import agent_kernels
from solid_bandits.core.agent_file import PathLike
from solid_bandits.core.setting import Setting
from solid_bandits.estimation.blocks import Blocks, each_block
from solid_bandits.estimation.estimator import Estimator
from solid_bandits.estimation.estimator import write_theta as solve
from solid_bandits.estimation.regression import degrees_of_freedom, noise_deviation
from solid_bandits.estimation.ridge import Regression
from solid_bandits.features.columns import IS, Columns
from solid_bandits.features.design import Design
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.greedy import Greedy
from solid_bandits.policies.linucb import TIE, LinUCB, radius
from solid_bandits.policies.randucb import RandUCB

KIND = "solid-bandits model"
VERSION = 1
"""The version of the format."""


def write_model(
    path: PathLike, policy: Policy, setting: Setting, compiled: Any, floor: float, design: Design | None
) -> None:
    """Write the file, whole or not at all."""
    content = model_to_plain(policy, setting, compiled, floor, design)
    target = path_of("path", path)
    try:
        write_bytes(target, encode(content) + b"\n")
    except OSError as error:
        reason = error.strerror or first_line(error)
        raise ValueError(f"model file {os.fspath(path)!r} cannot be written ({reason})") from None


def model_to_plain(
    policy: Policy, setting: Setting, compiled: Any, floor: float, design: Design | None
) -> Plain:
    """Return the contents of the file."""
    rule = _RULES.get(type(policy))
    if rule is None or getattr(policy, "thrift", None):
        raise ValueError(
            f"policy must be Greedy, LinUCB or RandUCB without thrift to be exported, got {policy!r}"
        )
    regression = _next(copy.deepcopy(compiled.state.regression), setting)
    decides = rule(policy, compiled._replace(state=compiled.state._replace(regression=regression)))
    plain: Plain = {
        "policy": policy.name,
        "step": int(regression.step),
        "rule": decides,
        "floor": float(floor),
        "tie": TIE,
        "dim": setting.width,
        "blocks": [_block(one, decides["kind"]) for one in each_block(regression.estimator)],
        "joint": setting.blocks == 0,
        "features": None if design is None else _featurizer(design),
    }
    plain = {
        "file": KIND,
        "version": VERSION,
        "model": hashlib.sha256(encode(plain)).hexdigest()[:16],
    } | plain
    return plain


def _next(regression: Any, setting: Setting) -> Any:
    """Let one decision pass in a copy of a regression: what is left is what the next decision is made by."""
    if not isinstance(regression, Regression | Blocks):
        raise ValueError(f"policy must have a regression of this package, got {type(regression).__name__}")
    evidence, searches = regression.evidence, regression.params.search.rounds > 0
    begun = evidence is None or not searches or evidence.start.item() > 0.0
    if not begun or not regression.estimator.weights.all():
        raise ValueError(
            "an export needs a ridge, which the first arms that differ from each other set: decide once before"
        )
    if regression.params.kept < 1.0:
        none = np.zeros((1, setting.dim)), np.ones(1, dtype=np.bool_)
        agent_kernels.let_pass(regression, *none, 1)
    else:
        regression.step[()] += 1
    return regression


def _greedy(policy: Any, agent: Any) -> Plain:
    return {"kind": "greedy"}


def _optimistic(policy: Any, agent: Any) -> Plain:
    regression = agent.state.regression
    width = radius(agent.params, agent.setting, regression, regression.step.item())
    return {"kind": "width", "width": float(width)}


def _random_width(policy: Any, agent: Any) -> Plain:
    regression, params = agent.state.regression, agent.params
    return {
        "kind": "random width",
        "deviation": float(noise_deviation(regression)),
        "degrees": float(degrees_of_freedom(regression)),
        "least": params.growth * math.log(regression.step.item()),
        "temperature": params.temperature,
    }


_RULES: dict[type, Callable[[Any, Any], Plain]] = {
    Greedy: _greedy,
    LinUCB: _optimistic,
    RandUCB: _random_width,
}


def _block(estimator: Estimator, kind: str) -> Plain:
    """One triangle: θ-hat alone where the rule asks for nothing else."""
    theta: Floats = np.zeros(len(estimator.targets))
    solve(estimator, theta)
    if kind == "greedy":
        return {"theta": theta.tolist()}
    rows = [estimator.triangle[row, row + 1 :].tolist() for row in range(len(theta))]
    return {
        "theta": theta.tolist(),
        "triangle": rows,
        "weights": estimator.weights.tolist(),
        "targets": estimator.targets.tolist(),
    }


def _featurizer(design: Design) -> Plain:
    """Named values as features, in the coordinates in force."""
    return {
        "sides": [_side(one) for one in design.sides],
        "slots": [[[list(factor) for factor in slot.term], slot.arm] for slot in design.slots],
        "own": bool(design.features.arm_features),
        "arms": design.arms,
        "offered": design.offered(),
    }


def _side(columns: Columns) -> Plain:
    return {
        "types": columns.kinds,
        "columns": [[one.name, f"={one.word}" if one.says == IS else one.says] for one in columns.columns],
        "scales": [[one.place, one.center, one.scale] for one in columns.measures],
    }
