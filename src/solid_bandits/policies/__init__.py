"""The policies, one algorithm per file.

The repr of `solid_bandits.policies` lists them; iterating over it gives their names.
"""

import sys
from collections.abc import Iterator
from types import ModuleType


class _Policies(ModuleType):
    """A module whose repr lists its policies; the catalogue is loaded on demand."""

    def __repr__(self) -> str:
        from solid_bandits.policies.catalogue import policy_lines

        lines = policy_lines()
        width = max(map(len, lines))
        return "\n".join(f"{name:{width}}  {line}" for name, line in lines.items())

    def __iter__(self) -> Iterator[str]:
        from solid_bandits.policies.catalogue import CATALOGUE

        return iter(CATALOGUE)


sys.modules[__name__].__class__ = _Policies
