"""`python -m solid_bandits` is the command `solid-bandits`."""

from solid_bandits.cli import main

main()
