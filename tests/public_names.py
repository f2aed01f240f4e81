"""Every public name, and what it stands for."""

import inspect

import solid_bandits as sb
import solid_bandits.identification

DATA = {"extend.OF_A_TRIANGLE", "logs.COLUMNS", "ope.ESTIMATORS"}


def public_names():
    """Dotted name -> object, of everything that `sb` and its public packages offer."""
    found = {}
    for name in [*sb.__all__, "identification"]:  # imported by its name
        value = getattr(sb, name)
        if not inspect.ismodule(value):
            found[name] = value
            continue
        for inner in getattr(value, "__all__", []):
            if not inspect.ismodule(getattr(value, inner)):
                found[f"{name}.{inner}"] = getattr(value, inner)
    return {name: value for name, value in found.items() if name not in DATA}


PUBLIC = public_names()
