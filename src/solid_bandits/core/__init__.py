"""Decisions from the problem to the agent: settings, offers, random numbers, the loop, one decision at a time."""
