"""Verdicts on one paper: its experiments as data, the code that plays them, its claims and their pages, and Jester."""
