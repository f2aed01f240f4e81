"""Compiled planning inside the loop: the allocation of (P) at the estimates, and the closest alternative models."""
