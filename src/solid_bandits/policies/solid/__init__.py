"""SOLID: asymptotic Optimal Linear prImal Dual, the algorithm of the paper.

`algorithm` is Algorithm 1, line by line; what the paper's ablations swap, and what only its theorems need, is a
component with a file of its own.
"""
