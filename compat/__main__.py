"""``python -m compat SUITE``: run an upstream suite stock and accelerated, and fail on what only stock passes."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from compat._run import run_suite
from compat._suite import MissingInput, Suite
from compat._verify import verify_suite

SUITES = tuple(sorted(file.parent.name for file in Path(__file__).parent.glob("*/suite.py")))

_DESCRIPTION = """\
Run an upstream project's own tests twice, without fastpickle ("stock") and with it, and compare test by test.
A test that passes on stock has to pass accelerated; a test that fails on stock is not counted.
A seeming regression is run again alone, on both sides, before it counts.

suites and their modes:
"""

_EPILOG = """\
exit status:
  0  no regressions
  1  regressions; with --verify: a dump that differs from stock's
  2  wrong usage, or something is missing: upstream's tests, a tool, a package, or any test that passes on stock
     (with --skip-missing, for CI: 0, with a line that begins with "skipped:")

environment:
  FASTPICKLE_CACHE  where fetched files are kept (default: .cache/compat)
  FASTPICKLE_PURE   1 switches the C accelerator off, as everywhere in fastpickle

examples:
  python -m compat cpython
  python -m compat dill --mode backend -v
  python -m compat dill --mode installed --test 'test_check.py::test_simple()'
  python -m compat dill --verify
  python -m compat cloudpickle --source cloudpickle-3.1.2.tar.gz
"""


class _Parser(argparse.ArgumentParser):
    """Report wrong usage in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (--help tells more)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one suite.

    Args:
        arguments: the command line; None for the process's own.

    Returns:
        The exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        suite: Suite = importlib.import_module(f"compat.{options.suite}.suite").prepare(options.source)
        modes = _chosen_modes(parser, suite, options.mode)
        if options.verify:
            installed = tuple(mode for mode in modes if mode.startswith("installed"))
            return verify_suite(suite, installed, tuple(options.test), options.jobs, float(options.timeout))
        return run_suite(
            suite,
            modes,
            tuple(options.test),
            options.jobs,
            float(options.timeout),
            verbose=options.verbose,
            timed=not options.untimed,
        )
    except MissingInput as missing:
        if options.skip_missing:
            print(f"skipped: {missing}\n\n0 passed, 0 failed")
            return 0
        print(f"python -m compat: {missing}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("python -m compat: interrupted", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m compat",
        description=_DESCRIPTION + "".join(map(_described, SUITES)),
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=SUITES, help="the upstream suite to run")
    parser.add_argument("--mode", action="append", help="run this mode only (can be repeated; default: all)")
    parser.add_argument("--test", action="append", default=[], help="run this test only, by its id (can be repeated)")
    parser.add_argument("--jobs", type=_positive, default=2, help="processes at once (default: 2)")
    parser.add_argument("--timeout", type=_positive, default=300, help="seconds for one process (default: 300)")
    parser.add_argument(
        "--untimed",
        action="store_true",
        help="compare the library's entry points, do not time them, and keep nothing for README's table",
    )
    parser.add_argument(
        "--verify",
        action="store_true",
        help="compare what each dump of the tests writes with what stock writes, instead of the tests' outcomes: "
        "in the modes that install fastpickle, on Linux, CPython 3.12 or later",
    )
    parser.add_argument("--source", type=Path, help="cloudpickle's source tarball, or the folder it unpacks to")
    parser.add_argument("--skip-missing", action="store_true", help="where something is missing, say so and exit 0")
    parser.add_argument("-v", "--verbose", action="store_true", help="a line per unit, and the tests not counted")
    return parser


def _described(name: str) -> str:
    """Say what a suite is, and what its modes do."""
    title = str(importlib.import_module(f"compat.{name}").__doc__).partition("\n")[0]
    modes: Mapping[str, str] = importlib.import_module(f"compat.{name}.suite").MODES
    lines = [f"  {name:13} {title}", *(f"    {mode:15} {what}" for mode, what in modes.items())]
    return "\n".join(lines) + "\n"


def _positive(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _chosen_modes(parser: argparse.ArgumentParser, suite: Suite, wanted: Sequence[str] | None) -> tuple[str, ...]:
    """Give the modes to run, in the suite's order; an unknown one is wrong usage."""
    for mode in wanted or ():
        if mode not in suite.modes:
            parser.error(f"{suite.name} has no mode {mode!r}; it has {', '.join(suite.modes)}")
    return tuple(mode for mode in suite.modes if not wanted or mode in wanted)


if __name__ == "__main__":
    sys.exit(main())
