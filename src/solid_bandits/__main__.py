"""`python -m solid_bandits` is the command `solid-bandits`."""

import sys

from solid_bandits._internal import extras


def main() -> None:
    """Run the command line, if it is installed."""
    try:
        from solid_bandits.cli import main as command
    except ModuleNotFoundError as error:
        missing = extras.missing(error, "the command line")
        if missing is None:
            raise
        print(f"solid-bandits: error: {missing}", file=sys.stderr)
        sys.exit(2)
    command()


if __name__ == "__main__":
    main()
