"""The policies, one algorithm per file."""
