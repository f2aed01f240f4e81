"""Many runs of many policies: the plan, its blocks of runs, the one way of playing them, and what comes of it.

`playing.play` does the tasks of plans and hands what they give to sinks: `simulate` keeps all of it in memory,
`summarise` sums it up, experiments keep it on disk.
"""
