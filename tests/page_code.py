"""The code blocks of a page of the documentation, as files and commands."""

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent.parent / "docs"


class Page(NamedTuple):
    """What a reader of a page would type."""

    files: dict[str, str]
    """Blocks whose first line is a comment with a file's name."""
    script: str
    """All other Python, in order."""
    commands: list[str]
    """Lines of console blocks, without the prompt."""


def read_page(name: str) -> Page:
    text = (DOCS / name).read_text(encoding="utf-8")
    files, script, commands = {}, [], []
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        title = re.match(r"# (\w+\.(?:py|toml))\n", block)
        if title:
            files[title[1]] = block
        elif language == "python":
            script.append(block)
        elif language == "console":
            commands += [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    return Page(files, "\n".join(script), commands)
