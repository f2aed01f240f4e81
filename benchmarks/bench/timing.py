"""Time, floor and their ratio, from rounds in which every player and every kernel has its turn."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bench import terms
from bench.cases import Cell, is_run
from bench.floors import FLOORS, Facts
from bench.player import Player
from bench.rates.draws import empty_loop
from bench.rates.meter import Meter, seconds_of


class Measured(NamedTuple):
    """Medians over the rounds of one cell."""

    cell: Cell
    time: float
    loop: float
    floor: float
    ratio: float
    spread: float
    """Half the distance between the quartiles of the ratio, relative to it."""
    counts: terms.Counts
    share: float
    facts: Facts


def measure(players: list[Player], meter: Meter, rounds: int) -> list[Measured]:
    """Play rounds in which every player and every kernel has its turn; return the medians."""
    facts = [player.facts() for player in players]
    items = [
        FLOORS[player.cell.label, player.cell.kind](player.cell.size, fact)
        for player, fact in zip(players, facts, strict=True)
    ]
    keys = sorted({term.key for item in items for term in terms.all_terms(item)})
    loops = sorted({player.cell.size[0] for player in players})
    times: list[list[float]] = [[] for _ in players]
    shares: list[list[float]] = [[] for _ in players]
    costs: dict[Any, list[float]] = {key: [] for key in keys}
    empty: dict[int, list[float]] = {contexts: [] for contexts in loops}
    for _ in range(rounds):
        for place, player in enumerate(players):
            seconds, share = player.round()
            times[place].append(seconds)
            shares[place].append(share)
        for key in keys:
            costs[key].append(meter.cost(key))
        for contexts in loops:
            empty[contexts].append(loop_seconds(contexts, meter.seconds))
    middle = {key: float(np.median(values)) for key, values in costs.items()}
    results = []
    for place, player in enumerate(players):
        loop = float(np.median(empty[player.cell.size[0]]))
        chosen = terms.cheapest(items[place], lambda term: term.times * middle[term.key])
        net = np.maximum(np.array(times[place]) - loop, 1e-10)
        # Round by round, so that anything that slows the machine for a while slows both.
        ratios = net / priced(chosen, costs)
        low, high = np.percentile(ratios, [25, 75])
        results.append(
            Measured(
                player.cell,
                float(np.median(net)),
                loop,
                float(np.median(priced(chosen, costs))),
                float(np.median(ratios)),
                float((high - low) / 2 / np.median(ratios)),
                terms.count(chosen),
                float(np.mean(shares[place])),
                facts[place],
            )
        )
    return results


def priced(chosen: list[terms.Term], costs: dict[Any, list[float]]) -> Any:
    """Return the seconds of these terms in every round."""
    return sum(term.times * np.array(costs[term.key]) for term in chosen)


def loop_seconds(contexts: int, seconds: float) -> float:
    """Return the seconds of a step of the loop without a policy."""
    edges = np.cumsum(np.full(contexts, 1.0 / contexts))
    arguments = (np.arange(1, 5).astype(np.uint64), edges, np.zeros(contexts))
    empty_loop(1000, *arguments)
    return seconds_of(empty_loop, arguments, max(1000, round(seconds / 3e-8)))


def measure_size(
    cells: list[Cell], rounds: int, seconds: float, doubtful: Callable[[list[Measured]], list[Cell]]
) -> list[Measured]:
    """Measure all cells of one size; measure those that `doubtful` names again, and keep the better result."""
    players = [Player(cell, seconds) for cell in cells if is_run(cell)]
    meter = Meter(min(0.003, seconds / 4))
    results = measure(players, meter, rounds)
    again = doubtful(results)
    if again:
        second = measure([player for player in players if player.cell in again], meter, rounds)
        best = {result.cell: result for result in second}
        results = [
            min(result, best.get(result.cell, result), key=lambda found: found.ratio) for result in results
        ]
    return results
