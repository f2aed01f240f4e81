"""Estimates with their intervals, and the numbers per run that they are taken of. Tables in, numbers out.

Nothing here plays, prints or compiles: experiments judge with it and reports show it.
"""
