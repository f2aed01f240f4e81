"""One file per library: its nearest equivalents of linear UCB and linear Thompson sampling, as `CONTENDERS`.

An adapter may prepare a library's inputs for each context beforehand, as the table of features is prepared for ours.
"""
