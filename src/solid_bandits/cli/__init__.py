"""The command line: arguments in, calls out.

Heavy imports are inside the functions, so that `--help` and errors in the arguments respond at once.
"""

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn, cast

import typer

from solid_bandits._internal import extras
from solid_bandits._internal.extras import MissingExtraError
from solid_bandits._internal.signals import handled
from solid_bandits.cli.bound import bound
from solid_bandits.cli.compare import compare, summarise
from solid_bandits.cli.evaluate import evaluate
from solid_bandits.cli.listing import policies, problems
from solid_bandits.cli.report import report
from solid_bandits.cli.reproduce import reproduce
from solid_bandits.cli.serve import keys, replay, serve, vacuum

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""

TERMINATED = 143
"""Exit status after SIGTERM, as in shells."""

LONGEST_END = 15.0
"""Largest number of seconds that a terminated command takes to clean up."""

EXAMPLES = """Examples:

  solid-bandits compare toy --policy randucb --policy "linucb(scale=0.5)"

  solid-bandits bound "random(n_arms=16)"

  solid-bandits evaluate log.parquet --policy uniform
"""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Contextual linear bandits: SOLID and its rivals, compared fairly.",
)
for _command in (
    compare,
    summarise,
    evaluate,
    reproduce,
    report,
    bound,
    policies,
    problems,
    serve,
    replay,
    vacuum,
):
    app.command()(_command)
app.add_typer(keys, name="keys")


def _print_version(wanted: bool) -> None:
    if wanted:
        from solid_bandits import __version__

        print(f"solid-bandits {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=EXAMPLES)
def _commands(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Contextual linear bandits: SOLID and its rivals, compared fairly."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> None:
    """Run the command line: every error that a user can cause is one line and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ξ must not make a command fail
    terminated: list[int] = []
    try:
        with _interrupted_by_sigterm(terminated), warnings.catch_warnings():
            warnings.showwarning = cast("Any", _show_warning)
            status = app(standalone_mode=False)
    except typer.TyperException as error:
        _fail(error.format_message())
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except (OSError, MissingExtraError) as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        missing = extras.missing(error, "this command")
        if missing is None:
            raise
        _fail(str(missing))
    if terminated:
        _fail("terminated before all results were written", status=TERMINATED)
    if status == INTERRUPTED:  # the status that typer itself gives Ctrl-C
        _fail("interrupted before all results were written", status=INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


class _Terminated(KeyboardInterrupt):
    """An interrupt by SIGTERM. Not KeyboardInterrupt itself, after which Python may end with its own exit status."""


@contextmanager
def _interrupted_by_sigterm(terminated: list[int]) -> Iterator[None]:
    """Make SIGTERM act like Ctrl-C inside the context, so that workers end and locks are released; record it."""

    def interrupt(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # once is enough, and the cleanup must not be interrupted
        terminated.append(number)
        # If the interrupt is lost on its way up, or the cleanup takes too long, workers end with this process.
        last = threading.Timer(LONGEST_END, os._exit, (TERMINATED,))
        last.daemon = True
        last.start()
        raise _Terminated

    with handled(interrupt, signal.SIGTERM):
        yield


def _show_warning(message: Warning | str, *_: object) -> None:
    """Print a warning in one line, like errors: its place in the code means nothing to a user of commands."""
    print(f"solid-bandits: warning: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(message: str, status: int = 2) -> NoReturn:
    print(f"solid-bandits: error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)
