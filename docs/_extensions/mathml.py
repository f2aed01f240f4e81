"""Renders mathematics as MathML while the pages are built.

Browsers display MathML themselves, so the pages need no script and no network. The converter is that of docutils, which
Sphinx depends on anyway; it reports commands that it does not know, and `make docs` turns the report into an error.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

THIN = '<mspace width="0.167em"></mspace>'
APPLY = "<mo>&ApplyFunction;</mo>"


def space_functions(mathml: str) -> str:
    """Thin spaces around the names of functions, as TeX sets them: browsers show `log t` as logt without."""
    mathml = re.sub(rf"{APPLY}(?!\s*<mo stretchy)", APPLY + THIN, mathml)
    return re.sub(rf"(</(?!math|mspace)\w+>)(?=\s*<mi>\w\w+</mi>\s*{APPLY})(?<!</mo>)", rf"\1{THIN}", mathml)


def convert(node: nodes.Element, block: bool) -> str:
    r"""The MathML of a formula. A block with `\\` or `&` gets the environment in which these mean something."""
    code = node.astext().strip()
    if block and not code.startswith(r"\begin{") and (r"\\" in code or "&" in code):
        code = rf"\begin{{aligned}}{code}\end{{aligned}}"
    try:
        return space_functions(tex2mathml(code, as_block=block))
    except (MathError, IndexError) as problem:
        logger.warning("no MathML for %r: %s", code, problem, location=node)
        return f"<code>{code}</code>"


def visit_inline(writer: Any, node: nodes.Element) -> None:
    """Write `$...$`."""
    writer.body.append(convert(node, block=False))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.Element) -> None:
    """Write `$$...$$`, in a box that scrolls where the window is narrow."""
    writer.body.append(f'<div class="formula">{convert(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
