"""What is about one paper's verdicts: its experiments as data, what plays them, its claims, their pages, Jester."""
