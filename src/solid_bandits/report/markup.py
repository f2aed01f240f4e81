"""What the pages are assembled from: their files, embedded data, policies' heads, facts. All text is escaped."""

import json
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from solid_bandits._types import Plain
from solid_bandits.report.palette import Look

# What plotly calls the patterns, as lengths of strokes and gaps in the little pictures beside the labels.
_STROKES = {"solid": "", "dot": "2 2.5", "dashdot": "7 2.5 2 2.5", "dash": "6 4"}


def read_part(name: str) -> str:
    """A file of this package: a template, a style or a script."""
    return (files("solid_bandits.report") / name).read_text(encoding="utf-8")


def embedded(data: Plain) -> str:
    """The data as json without "<", ">" and "&": no label can end the script element in which they lie."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def swatch(colour: str, dash: str) -> str:
    """A piece of a policy's line, to stand beside its label."""
    return (
        f'<svg class="swatch" viewBox="0 0 22 8" aria-hidden="true"><line x1="0" y1="4" x2="22" y2="4" '
        f'stroke="{colour}" stroke-width="3" stroke-dasharray="{_STROKES[dash]}"/></svg>'
    )


def policy_head(policy: str, look: Look) -> str:
    """The head of a policy's row in a table."""
    return f'<th scope="row"><div>{swatch(look.colour, look.dash)}<span>{escape(policy)}</span></div></th>'


def parameters(given: Plain) -> str:
    """A policy's kind and parameters, each as a chip."""
    kind = given.get("kind")
    chips = [f"<code>{escape(str(kind))}</code>"] if kind is not None else []
    chips += [
        f"<code>{escape(key)} = {escape(plain(value))}</code>"
        for key, value in given.items()
        if key != "kind"
    ]
    return "".join(chips)


def facts(given: Mapping[str, Any]) -> str:
    """Names and values as a list."""
    pairs = (
        f"<div><dt>{escape(key)}</dt><dd>{escape(plain(value))}</dd></div>" for key, value in given.items()
    )
    return f"<dl>{''.join(pairs)}</dl>"


def plain(value: Any) -> str:
    """A manifest's value in words: text as it is, the rest as json."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
