"""Estimates with their intervals, and the per-run numbers that they are computed from. Tables in, numbers out.

Nothing here plays, prints or compiles: experiments use it for judging, and reports for showing.
"""
