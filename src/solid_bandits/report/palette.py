"""One look per policy, shared by the figure and the page."""

from collections.abc import Iterable
from typing import Any, NamedTuple

# Okabe and Ito's colours, which can be told apart with any common colour blindness, without the two that vanish on a
# white page (yellow) or on a dark one (black).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

# Beyond six policies the colours repeat with the next line pattern. Plain dashes are reserved for the lower bound.
# Matplotlib and plotly spell patterns differently.
PATTERNS = (("-", "solid"), ((0, (1, 1.2)), "dot"), ((0, (5, 1.2, 1, 1.2)), "dashdot"))

BAND_OPACITY = 0.18


class Look(NamedTuple):
    """Colour and line pattern of a policy."""

    colour: str
    """#rrggbb."""
    linestyle: str | tuple[int, tuple[float, ...]]
    """The pattern of the line, for matplotlib."""
    dash: str
    """The same pattern, for plotly."""

    @property
    def line(self) -> dict[str, Any]:
        """Colour and pattern as arguments of matplotlib's plot."""
        return {"color": self.colour, "linestyle": self.linestyle}


def looks(policies: Iterable[str]) -> dict[str, Look]:
    """Give each policy its look, by its position in the order in which the policies were given."""
    result = {}
    for index, policy in enumerate(policies):
        turn, colour = divmod(index, len(COLOURS))
        linestyle, dash = PATTERNS[turn % len(PATTERNS)]
        result[policy] = Look(COLOURS[colour], linestyle, dash)
    return result
