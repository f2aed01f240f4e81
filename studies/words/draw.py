"""Draw random docstrings, comments, messages and names of a commit, so that their English can be judged.

Usage: python studies/words/draw.py [COMMIT] [--count 100] [FOLDER ...]

The seed is the full hash of the commit, and the text is that of the commit, so the same commit always gives the same
draw. Half of the draw are docstrings, attribute docstrings and comments, a quarter are messages (texts that are raised,
printed, warned or shown as help), a quarter are names of functions, classes, arguments and constants. Prints a Markdown
table with an empty column for the verdict.
"""

import argparse
import ast
import io
import random
import re
import subprocess
import tarfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("src", "attacks", "benchmarks", "tests")
SHARES = {"note": 0.5, "message": 0.25, "name": 0.25}
"""Share of the draw of each kind; a note is a docstring or a comment."""
SPEAKING = {"print", "warn", "_warn", "error", "add_argument", "ArgumentError"}
"""Functions whose text arguments are messages, besides every exception that is raised."""
IGNORED = ("type: ignore", "noqa", "fmt: ", "pragma", "isort", "mypy: ")
"""Beginnings of comments that are addressed to tools."""


class Item(NamedTuple):
    """A text of the project, and where it is."""

    kind: str
    path: str
    line: int
    text: str


def sources(commit: str, folders: list[str]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every Python file of a commit below some folders."""
    packed = subprocess.run(
        ["git", "archive", "--format=tar", commit, *folders], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            file = archive.extractfile(member) if member.name.endswith(".py") else None
            if file is not None:
                yield member.name, file.read().decode()


def text_of(node: ast.AST) -> str:
    """Return the text of a literal, with the expressions of an f-string in braces; empty for any other node."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            text_of(part) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
            for part in node.values
            if isinstance(part, (ast.Constant, ast.FormattedValue))
        )
    return ""


def notes(path: str, source: str, tree: ast.Module) -> Iterator[Item]:
    """Yield docstrings, of attributes too, and comments; adjacent lines of comment are one item."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                text = text_of(statement.value)
                if text.strip():
                    yield Item("note", path, statement.lineno, text.strip().split("\n\n")[0])
    block: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        said = token.string.lstrip("#! ")
        if token.type != tokenize.COMMENT or said.startswith(IGNORED):
            continue
        alone = token.line.lstrip().startswith("#")
        if block and (token.start[0] != last + 1 or not alone):
            yield Item("note", path, first, "# " + " ".join(block))
            block = []
        if not block:
            first = token.start[0]
        block.append(said)
        last = token.start[0] if alone else -1
    if block:
        yield Item("note", path, first, "# " + " ".join(block))


def messages(path: str, tree: ast.Module) -> Iterator[Item]:
    """Yield texts of at least two words that are raised, printed, warned or shown as help."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            spoken: list[ast.AST] = [node.exc]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) in SPEAKING
        ):
            spoken = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in ("complaint", "words") for target in node.targets
        ):
            spoken = [node.value]
        else:
            continue
        for part in spoken:
            joined = [one for one in ast.walk(part) if isinstance(one, ast.JoinedStr)]
            inside = {id(below) for one in joined for below in ast.walk(one) if below is not one}
            for literal in ast.walk(part):
                text = text_of(literal) if id(literal) not in inside else ""
                if re.search(r"[A-Za-z]{2,}\W*\s\W*[A-Za-z]{2,}", re.sub(r"{[^{}]*}", "", text)):
                    yield Item("message", path, literal.lineno, text)


def names(path: str, tree: ast.Module) -> Iterator[Item]:
    """Yield names of functions, classes, arguments and module constants of at least four letters."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield Item("name", path, node.lineno, node.name)
        elif isinstance(node, ast.arg):
            yield Item("name", path, node.lineno, node.arg)
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name):
                yield Item("name", path, statement.lineno, target.id)


def collected(commit: str, folders: list[str]) -> list[Item]:
    """Return every item of a commit once, in order; a name counts once in each file."""
    found = set()
    for path, source in sources(commit, folders):
        tree = ast.parse(source)
        found.update(notes(path, source, tree))
        found.update(messages(path, tree))
        by_name = {
            item.text: item for item in names(path, tree) if re.fullmatch(r"(?!__|self$)\w{4,}", item.text)
        }
        found.update(by_name.values())
    return sorted(found)


def draw(commit: str, folders: list[str], count: int) -> list[Item]:
    """Return the draw: of each kind its share, without replacement, seeded with the hash of the commit."""
    items, chance = collected(commit, folders), random.Random(commit)
    drawn: list[Item] = []
    for kind, share in SHARES.items():
        pool = [item for item in items if item.kind == kind]
        drawn += chance.sample(pool, min(round(share * count), len(pool)))
    return drawn


def main() -> None:
    """Print the draw as a table."""
    parser = argparse.ArgumentParser(description="Draw random docstrings, messages and names to judge.")
    parser.add_argument(
        "commit", nargs="?", default="HEAD", help="commit whose text is drawn, and whose hash is the seed"
    )
    parser.add_argument("folders", nargs="*", help=f"folders or files to draw from ({', '.join(FOLDERS)})")
    parser.add_argument("--count", type=int, default=100, help="number of items")
    given = parser.parse_args()
    commit = subprocess.run(
        ["git", "rev-parse", given.commit], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    print(f"Commit {commit}\n\n| | kind | where | text | verdict |\n|---|---|---|---|---|")
    for number, item in enumerate(draw(commit, given.folders or list(FOLDERS), given.count), 1):
        text = " ".join(item.text.split()).replace("|", "\\|")
        print(f"| {number} | {item.kind} | {item.path}:{item.line} | {text} | |")


if __name__ == "__main__":
    main()
