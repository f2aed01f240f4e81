"""Lists the policies of the catalogue in the reference, so that a new policy needs no line there."""

import re
from typing import TYPE_CHECKING, Any

import solid_bandits
from solid_bandits.policies.catalogue import CLASSES, DECIDING

if TYPE_CHECKING:  # the tests ask for `expand` alone, also where no Sphinx is installed
    from sphinx.application import Sphinx


def expand(text: str) -> str:
    """Replace `.. policies:: deciding` and `.. policies:: planning` by the policies that the page does not name."""

    def lines(found: re.Match[str]) -> str:
        names = [name for name in CLASSES if (name in DECIDING) == (found[1] == "deciding")]
        homes = [f"{'' if name in solid_bandits.__all__ else 'rivals.'}{name}" for name in names]
        listed = [f".. autoclass:: solid_bandits.{home}" for home in homes]
        return "\n".join(line for line in listed if f"{line}\n" not in text)

    return re.sub(r"^\.\. policies:: (deciding|planning)$", lines, text, flags=re.MULTILINE)


def _read(_: "Sphinx", __: str, source: list[str]) -> None:
    source[0] = expand(source[0])


def setup(app: "Sphinx") -> dict[str, Any]:
    """Have every page read with its lists."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True}
