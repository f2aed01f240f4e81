"""Choices made where the paper leaves something open, and its sentences that are not judged."""

LEFT_OPEN = {
    "the bonus in g_t": "Eq. (gt) has the constants of the theorems, which keep λ at 0 up to any horizon that anyone "
    "plays, while the experiments are said to be without numerical constants: four readings, each played",
    "λ_max": "1000",
    "“sparse” features and θ* of the random problems": "an entry is not 0 with probability 0.5",
    "the random problems of the 100 runs": "a new one in each run",
    "the toy's horizon, and the ablations'": "50,000 steps, as of the random problems",
    "the ablations' grids": "z₀ of 1, 10, 30, 100, 1000; λ₁ of 0, 1, 10, 50, 100; α^ω of 0.001, 0.01, 0.1, 0.5, 1; α^λ "
    "of 0.01, 0.1, 0.5, 1, 5",
    "gradients in the ablations": "normalised, as in the main experiments",
    "ε of OAM on the toy": "0, 0.01 and 0.05",
    "LinTS's scale": "that of Agrawal and Goyal without √d, which still grows with √log t, is LinTS (paper) and "
    "counts; draws from the posterior, LinTS (posterior), stand beside",
    "RandUCB": "no policy of the paper, shown for reference: with the ridge of 0.2 that it had when these runs "
    "were made, not its default of today",
    "“similar”, “not affected”, “sensitive”": "20% of what is compared with",
    "“often”": "in more than half of a figure's panels",
    "“almost greedy”": "less than a tenth of the rounds explore",
    "“no linear dependence” on |A|": "with 8 times the arms less than 4 times the regret",
    "“in some problems” of one problem": "in some runs",
    "“only a few times”": "in less than a thousandth of the rounds",
    "an algorithm that tracks η*": "OAM with ε = 0, which tracks the η* of its estimate",
    "“meaningful exploration”": "ten pulls of the arm that η* pulls",
    "“in proportion”": "give or take a factor of 2",
    "“slightly better”": "better, by however much; of OAM with ε = 0.01, which the paper names elsewhere",
}
"""Question -> the choice made here."""

NOT_JUDGED = {
    "OAM's forced exploration pulls all arms in a round robin fashion (Section 6, random problems).": "so it is built",
    "Resetting is harmless since phases are long (Appendix, phase schedule).": "a guess at the cause; that many steps "
    "exploit is judged",
    "We do not know whether the theory extends to direct tracking (Appendix, tracking).": "not on experiments",
}
"""Sentence -> why no verdict is given."""
