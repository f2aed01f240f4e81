"""Decisions with ids in production: an agent, its memory of decisions, and their log."""
