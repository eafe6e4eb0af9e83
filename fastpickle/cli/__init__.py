"""The command line, ``python -m fastpickle``.

    argv --> main() --> bench.run()  --> exit status      does fastpickle help with my data?
                    --> verify.run()                      does my program write the same bytes with it?

    0    done, and all bytes were identical
    1    fastpickle wrote other bytes than stock, or failed where stock does not
    2    the input cannot be used; one line on stderr says what to do
    130  interrupted (Ctrl-C)

Not for: being imported by the rest of the package. Importing it needs nothing that is not in the
standard library; ``bench`` wants rich, which comes with ``fastpickle[bench]``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import fastpickle
from fastpickle.cli import bench, verify

__all__ = ["main"]

EXIT_BROKEN_PIPE = 141
"""128 + SIGPIPE, as a shell reports a program whose reader went away."""


def build_parser() -> argparse.ArgumentParser:
    """Describe the command line.

    Returns:
        The parser; what it returns has a ``run`` that takes the parsed arguments and returns the
        exit status.
    """
    parser = argparse.ArgumentParser(
        prog="python -m fastpickle",
        description="Faster pickling for subclasses of pickle._Pickler, with the same bytes.",
    )
    parser.add_argument("--version", action="version", version=f"fastpickle {fastpickle.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    bench.add_command(commands)
    verify.add_command(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments without the program's name; None for those of the process.

    Returns:
        The exit status; see the table at the top of this module.

    Raises:
        SystemExit: By argparse, with status 0 for ``--help`` and ``--version`` and 2 for arguments
            that do not parse.
    """
    try:
        arguments = build_parser().parse_args(argv)
        status: int = arguments.run(arguments)
        if not sys.stdout.closed:  # by the program that `verify` has run
            sys.stdout.flush()
    except KeyboardInterrupt:
        return verify.EXIT_INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes stdout once more when it ends; let it not find the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    return status
