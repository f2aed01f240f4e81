"""Many runs of many policies: the plan, its blocks of runs, how they are played, and the results.

`playing.play` runs the tasks of plans and hands their results to sinks: `simulate` keeps everything in memory,
`summarise` keeps summary statistics, and experiments keep everything on disk.
"""
