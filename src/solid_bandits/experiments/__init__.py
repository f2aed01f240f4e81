"""Each figure of the paper as data (problems x policies x horizon x runs), its claims, and what plays it."""
