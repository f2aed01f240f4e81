"""Parts of a floor: kernels, alternative ways, their counts and the cheapest way."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from bench.rates.kernels import KERNELS


class Term(NamedTuple):
    """A kernel at a shape with a count, and why the step needs it."""

    kernel: str
    shape: tuple[int, ...]
    why: str
    times: float = 1.0

    @property
    def key(self) -> tuple[str, tuple[int, ...]]:
        """Key that its cost depends on."""
        return self.kernel, self.shape


class AnyOf(NamedTuple):
    """Several ways to do the same."""

    ways: tuple[tuple[Term, ...], ...]
    why: str


Items = list[Term | AnyOf]


class Counts(NamedTuple):
    """Operations and bytes of a floor."""

    madds: float
    specials: float
    bytes: float


def count(terms: Iterable[Term]) -> Counts:
    """Return the total operations and bytes of these terms."""
    madds = specials = floats = 0.0
    for term in terms:
        kernel = KERNELS[term.kernel]
        madds += term.times * kernel.madds(*term.shape)
        specials += term.times * kernel.specials(*term.shape)
        floats += term.times * kernel.floats(*term.shape)
    return Counts(madds, specials, 8.0 * floats)


def all_terms(items: Items) -> list[Term]:
    """Return every term of every way."""
    terms: list[Term] = []
    for item in items:
        if isinstance(item, Term):
            terms.append(item)
        else:
            terms += [term for way in item.ways for term in way]
    return terms


def cheapest(items: Items, cost: Callable[[Term], float]) -> list[Term]:
    """Return the terms of the cheapest way."""
    terms: list[Term] = []
    for item in items:
        if isinstance(item, Term):
            terms.append(item)
        else:
            terms += min(item.ways, key=lambda way: sum(cost(term) for term in way))
    return terms
