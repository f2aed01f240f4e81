"""What setting a policy is made for: some know one context only."""

from solid_bandits.problem import View

CONTEXTUAL = ("Solid", "OAM", "IDS", "LinUCB", "LinTS", "EpsilonGreedy", "Greedy")
"""The policies that take several contexts."""


def require_one_context(policy: str, view: View) -> None:
    """Refuse several contexts on behalf of a policy whose rule has no place for them."""
    n_contexts = view.features.shape[0]
    if n_contexts > 1:
        raise ValueError(
            f"features has {n_contexts} contexts; {policy} takes one. Policies that take several: "
            f"{', '.join(CONTEXTUAL)}"
        )
