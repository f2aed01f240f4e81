"""The policies by the names that the command line takes, and what is known of each: the paper's Table 1, extended."""

from collections.abc import Callable
from typing import NamedTuple

from solid_bandits.policies.aoids import AOIDS
from solid_bandits.policies.contract import Policy
from solid_bandits.policies.end_of_optimism import EndOfOptimism
from solid_bandits.policies.epsilon_greedy import EpsilonGreedy
from solid_bandits.policies.greedy import Greedy
from solid_bandits.policies.lints import LinTS
from solid_bandits.policies.linucb import LinUCB
from solid_bandits.policies.oam import OAM
from solid_bandits.policies.ossb import OSSB
from solid_bandits.policies.randucb import RandUCB
from solid_bandits.policies.solid.policy import Solid
from solid_bandits.policies.spl import SPL
from solid_bandits.policies.streaming.policy import StreamingSolid
from solid_bandits.policies.ucb1 import UCB1
from solid_bandits.policies.vids import VIDS


class Entry(NamedTuple):
    """One policy of the catalogue."""

    label: str
    """What figures and tables call it."""
    make: Callable[[str, int], Policy]
    """From the problem's kind (`toy`, `random`, ...) and its number of arms to parameters."""
    line: str
    """What it does, in one line."""
    contextual: bool
    """Whether it takes several contexts; if not, it refuses them."""
    setting: str
    """What its theory is about."""
    optimality: str
    """What is proved of its regret as n grows: the constant of the lower bound, its order, or nothing."""
    exploration: str
    """What makes it explore."""
    test: str
    """How it decides between exploring and exploiting."""
    parameters: tuple[str, ...]
    """The parameters that matter, most important first."""
    reference: str


def _solid(kind: str, n_arms: int) -> Policy:
    # The paper has two sets of parameters: one for the toy, one for everything else it plays.
    return Solid() if kind == "toy" else Solid.paper_random(n_arms)


CATALOGUE = {
    "solid": Entry(
        label="SOLID",
        make=_solid,
        line="optimistic primal-dual steps on the lower bound's Lagrangian; draws arms from the policy they learn",
        contextual=True,
        setting="linear, contextual",
        optimality="constant; finite-time bound",
        exploration="optimism",
        test="likelihood ratio",
        parameters=("z0", "initial_multiplier", "policy_step", "multiplier_step", "max_multiplier"),
        reference="Tirinzoni et al. 2020",
    ),
    "streaming-solid": Entry(
        label="Streaming SOLID",
        make=lambda kind, n_arms: StreamingSolid(),
        line="SOLID's primal-dual steps as sums over features, for contexts never seen before; has a budget",
        contextual=True,
        setting="linear, contextual",
        optimality="none proved",
        exploration="optimism",
        test="likelihood ratio, and a budget",
        parameters=("budget", "z0", "initial_multiplier", "fading"),
        reference="this project, after Tirinzoni et al. 2020",
    ),
    "randucb": Entry(
        label="RandUCB",
        make=lambda kind, n_arms: RandUCB(),
        line="the largest upper confidence bound, its width drawn anew for each decision; scale-free",
        contextual=True,
        setting="linear, contextual",
        optimality="none proved with these parameters",
        exploration="optimism of random width",
        test="none",
        parameters=("temperature", "growth", "ridge"),
        reference="Vaswani et al. 2020; parameters of this project",
    ),
    "vids": Entry(
        label="VIDS",
        make=lambda kind, n_arms: VIDS(),
        line="mixes two arms so that expected regret² per information about the best arm is least, by samples",
        contextual=True,
        setting="linear, contextual",
        optimality="none; Bayesian bound",
        exploration="information",
        test="none",
        parameters=("samples", "memory", "ridge"),
        reference="Russo and Van Roy 2018",
    ),
    "oam": Entry(
        label="OAM",
        # The paper re-solves every 100 rounds on all but the toy; compiled, every round is affordable.
        make=lambda kind, n_arms: OAM(),
        line="matches pulls to the lower bound's allocation at the estimates; forced exploration",
        contextual=True,
        setting="linear, contextual",
        optimality="constant",
        exploration="forcing; LinUCB where matching would be wasted",
        test="likelihood ratio, arm by arm",
        parameters=("epsilon", "resolve_every"),
        reference="Hao, Lattimore and Szepesvári 2020",
    ),
    "ao-ids": Entry(
        label="AO-IDS",
        make=lambda kind, n_arms: AOIDS(),
        line="mixes two arms so that regret² per information about the nearest alternatives is least",
        contextual=True,
        setting="linear; the contextual variant is this project's",
        optimality="constant (one context); finite-time bound",
        exploration="optimism",
        test="likelihood ratio",
        parameters=("learning_rate",),
        reference="Kirschner et al. 2021",
    ),
    "ossb": Entry(
        label="OSSB",
        make=lambda kind, n_arms: OSSB(),
        line="pulls every arm as often as the lower bound says at the estimates; forced exploration",
        contextual=False,
        setting="structured, one context; linear here",
        optimality="order (constant as gamma, epsilon fall); finite-time bound",
        exploration="forcing",
        test="pulls tracked",
        parameters=("epsilon", "gamma", "resolve_every"),
        reference="Combes, Magureanu and Proutiere 2017",
    ),
    "spl": Entry(
        label="SPL",
        make=lambda kind, n_arms: SPL(),
        line="AdaHedge plays the lower bound's game against the closest alternative; tracks its rates",
        contextual=False,
        setting="structured, one context; linear here",
        optimality="constant; finite-time bound",
        exploration="optimism arm by arm",
        test="likelihood ratio",
        parameters=("gap_clip",),
        reference="Degenne, Shao and Koolen 2020",
    ),
    "end-of-optimism": Entry(
        label="End of optimism",
        make=lambda kind, n_arms: EndOfOptimism(),
        line="warms up, solves the lower bound's allocation once and follows it; UCB if the estimates move",
        contextual=False,
        setting="linear, one context",
        optimality="constant",
        exploration="warm-up on a spanner",
        test="estimates hold",
        parameters=("tolerance",),
        reference="Lattimore and Szepesvári 2017",
    ),
    "linucb": Entry(
        label="LinUCB",
        make=lambda kind, n_arms: LinUCB(),
        line="the arm with the largest upper confidence bound, without numerical constants",
        contextual=True,
        setting="linear, contextual",
        optimality="none; worst-case bound",
        exploration="optimism",
        test="none",
        parameters=("scale", "radius"),
        reference="Abbasi-Yadkori, Pál and Szepesvári 2011",
    ),
    "linucb-theorem": Entry(
        label="LinUCB (theorem)",
        make=lambda kind, n_arms: LinUCB(radius="theorem"),
        line="LinUCB with the full radius of Theorem 2 of Abbasi-Yadkori et al.",
        contextual=True,
        setting="linear, contextual",
        optimality="none; worst-case bound",
        exploration="optimism",
        test="none",
        parameters=("scale", "delta"),
        reference="Abbasi-Yadkori, Pál and Szepesvári 2011",
    ),
    "lints-paper": Entry(
        label="LinTS (paper)",
        make=lambda kind, n_arms: LinTS(scale="paper"),
        line="the best arm of a model drawn around the estimate, the draw widened by √log t",
        contextual=True,
        setting="linear, contextual",
        optimality="none; worst-case bound (with a further √d)",
        exploration="sampling",
        test="none",
        parameters=("scale", "multiple"),
        reference="Agrawal and Goyal 2013",
    ),
    "lints": Entry(
        label="LinTS (posterior)",
        make=lambda kind, n_arms: LinTS(),
        line="the best arm of a model drawn from the Bayesian posterior",
        contextual=True,
        setting="linear, contextual",
        optimality="none; Bayesian bound",
        exploration="sampling",
        test="none",
        parameters=("scale", "multiple"),
        reference="Russo and Van Roy 2014",
    ),
    "epsilon-greedy": Entry(
        label="Epsilon-greedy",
        make=lambda kind, n_arms: EpsilonGreedy(),
        line="the arm that looks best, but any arm with probability epsilon",
        contextual=True,
        setting="any",
        optimality="none; linear regret unless epsilon falls",
        exploration="uniform",
        test="none",
        parameters=("epsilon", "decay"),
        reference="Auer, Cesa-Bianchi and Fischer 2002",
    ),
    "ucb1": Entry(
        label="UCB1",
        make=lambda kind, n_arms: UCB1(),
        line="the largest upper confidence bound, arm by arm, features not used",
        contextual=False,
        setting="unstructured, one context",
        optimality="order, of the problem without structure",
        exploration="optimism arm by arm",
        test="none",
        parameters=("scale",),
        reference="Auer, Cesa-Bianchi and Fischer 2002",
    ),
    "greedy": Entry(
        label="Greedy",
        make=lambda kind, n_arms: Greedy(),
        line="the arm that looks best, always",
        contextual=True,
        setting="any",
        optimality="none; enough where the optimal arms span R^d",
        exploration="none",
        test="none",
        parameters=(),
        reference="",
    ),
}


CLASSES: dict[str, type[Policy]] = {
    kind.__name__: kind
    for kind in (
        Solid,
        StreamingSolid,
        RandUCB,
        VIDS,
        OAM,
        AOIDS,
        OSSB,
        SPL,
        EndOfOptimism,
        LinUCB,
        LinTS,
        EpsilonGreedy,
        UCB1,
        Greedy,
    )
}
"""The policies by the names of their classes."""


def policy_lines() -> dict[str, str]:
    """Name -> one line on every policy."""
    return {name: f"{entry.label}: {entry.line}" for name, entry in CATALOGUE.items()}


def policy_table() -> list[dict[str, str]]:
    """One row per policy: the paper's Table 1, extended. The columns are the same in every row."""
    return [
        {
            "name": name,
            "policy": entry.label,
            "class": type(entry.make("random", 2)).__name__,
            "contexts": "several" if entry.contextual else "one",
            "setting": entry.setting,
            "optimality": entry.optimality,
            "exploration": entry.exploration,
            "test": entry.test,
            "parameters": ", ".join(entry.parameters) or "none",
            "reference": entry.reference,
            "line": entry.line,
        }
        for name, entry in CATALOGUE.items()
    ]
