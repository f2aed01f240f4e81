"""SOLID: asymptotic Optimal Linear prImal Dual, the algorithm of the paper.

`algorithm` is Algorithm 1, line by line. Parts that the paper's ablations exchange, and parts that only its theorems
need, are components with a file of their own.
"""
