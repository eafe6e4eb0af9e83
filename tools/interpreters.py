#!/usr/bin/env python3
"""Find or make every Python that the test matrix runs on: CPython 3.10 to 3.15, free-threaded builds, PyPy 3.11.

    finding   PATH, pyenv's versions, uv's Pythons, this cache ── each is run once ──► Interpreter
        │ nothing usable
        ▼
    making    the machine's own mirror: packages, and sources of free-threaded ones; then uv
        │
        ▼
    a small script for each in bin/, for PATH

The cache is ``.cache/interpreters/`` beside the project, or ``$FASTPICKLE_CACHE/interpreters/``; a lock file keeps two
runs from making one at once.

The Pythons that are unpacked have no working ensurepip: make environments with uv or virtualenv.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from finding import MAY_BE_MISSING, VERSIONS, Interpreter, cached, choose, executable_name, look
from making import from_mirror, from_sources, from_uv
from mirror import ToolError
from steps import OneLineParser, cache_folder, locked

_DESCRIPTION = """\
Find the Pythons that the test matrix runs on, and make those that are missing.

They are looked for on PATH, in pyenv's and in uv's folders and in the cache.  What is missing is downloaded from the
Debian or Ubuntu mirror that this machine's apt uses, and unpacked into the cache; nothing is installed.  Of
free-threaded ones the mirror has the sources, which are built, with gcc and make.  What that mirror does not have is
asked of "uv python install", which needs the network beyond the mirror.
"""

_EPILOG = f"""\
interpreters: {", ".join(VERSIONS)}

exit status:
  0  all are there
  1  some are missing; each is named with the reason
  2  wrong usage, or the cache cannot be written

environment:
  FASTPICKLE_CACHE   they are kept in its folder "interpreters" (default: .cache/interpreters beside the project)
  FASTPICKLE_MIRROR  the address of a Debian or Ubuntu mirror, as --mirror
  PYENV_ROOT         where pyenv is (default: ~/.pyenv)

examples:
  python3 tools/interpreters.py                          find or make all, and list them
  python3 tools/interpreters.py --no-fetch               only look
  python3 tools/interpreters.py --only 3.14,pypy3.11
  PATH="$(python3 tools/interpreters.py --path):$PATH" tox -e py314
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Find or make the interpreters and print them.

    Args:
        arguments: the command line; None for the process's own.

    Returns:
        The exit status.
    """
    options = _parser().parse_args(arguments)
    try:
        found, missing = gather(options.only, fetch=not options.no_fetch, mirror=options.mirror)
        if options.path:
            print(bin_folder())
        else:
            print_table(found.values())
    except ToolError as error:
        print(f"interpreters: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interpreters: interrupted", file=sys.stderr)
        return 2
    for name, reason in missing.items():
        print(f"missing: {name}: {reason}", file=sys.stderr)
    return 1 if missing else 0


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="interpreters.py",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    usual = tuple(name for name in VERSIONS if name not in MAY_BE_MISSING)
    only = f"only these interpreters (default: {', '.join(usual)})"
    parser.add_argument("--only", type=names, default=usual, metavar="NAME,...", help=only)
    parser.add_argument("--no-fetch", action="store_true", help="only look; make nothing that is missing")
    parser.add_argument("--path", action="store_true", help="print the folder to put before PATH, instead of the table")
    parser.add_argument(
        "--mirror",
        default=os.environ.get("FASTPICKLE_MIRROR"),
        metavar="URL",
        help="a Debian or Ubuntu mirror (default: the one that apt uses here); its keyring must be installed",
    )
    return parser


def names(text: str) -> tuple[str, ...]:
    """Read a list of interpreters from the command line.

    Args:
        text: names with commas between them; "3.14", "py314", "python3.14" and "cpython3.14" are the same.

    Returns:
        The names as in VERSIONS, in the order given, each once.

    Raises:
        argparse.ArgumentTypeError: one is unknown, or there are none.
    """
    wanted: dict[str, None] = {}
    for part in filter(None, (part.strip().lower() for part in text.split(","))):
        name = re.sub(r"^(cpython-?|python|py(?!py))", "", part)
        name = re.sub(r"^((?:pypy)?3)(?=\d)", r"\1.", name)
        if name not in VERSIONS:
            raise argparse.ArgumentTypeError(f"there is no interpreter {part!r}; there are {', '.join(VERSIONS)}")
        wanted[name] = None
    if not wanted:
        raise argparse.ArgumentTypeError("no interpreter is named")
    return tuple(wanted)


def print_table(found: Iterable[Interpreter]) -> None:
    """Print one row per interpreter: version, where it comes from, path."""
    rows = [("interpreter", "version", "from", "path")]
    for one in found:
        rows.append((one.name, one.release, one.source + ("" if one.good else ", " + shortfall(one)), str(one.path)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        print("  ".join([cell.ljust(width) for cell, width in zip(row, widths, strict=False)] + [row[3]]))


def shortfall(one: Interpreter) -> str:
    """Say what is wrong with an interpreter that is not good."""
    return "without the library's tests" if one.final else "not a final release"


def gather(
    wanted: Sequence[str] = VERSIONS, *, fetch: bool = True, mirror: str | None = None
) -> tuple[dict[str, Interpreter], dict[str, str]]:
    """Find the interpreters, make what is missing, and write a script for each into bin_folder().

    Args:
        wanted: their names, of VERSIONS.
        fetch: whether to make what is missing.
        mirror: the address of a mirror; None for the one that apt uses here.

    Returns:
        The interpreters by name; and for each one that is missing, the reason in one line.

    Raises:
        ToolError: the cache cannot be written.
    """
    cache = cache_folder("interpreters")
    found, second_best = look(wanted, cache)
    absent = [name for name in wanted if name not in found]
    reasons = dict.fromkeys(absent, "it is not on this machine")
    if absent and fetch:
        with locked(cache / "lock", "another run is making interpreters"):
            for left_over in cache.glob("making-*"):  # by a run that was killed
                shutil.rmtree(left_over, ignore_errors=True)
            for name in absent:  # which may have been made while this run waited
                if again := choose(name, cached(name, cache))[0]:
                    found[name] = again
            for make in (
                functools.partial(from_mirror, given=mirror),
                functools.partial(from_sources, given=mirror),
                from_uv,
            ):
                if left := [name for name in absent if name not in found]:
                    made, failed = make(left, cache)
                    found |= made
                    reasons |= {name: f"{reasons[name]}; {reason}" for name, reason in failed.items()}
    for name in absent:
        if name not in found and name in second_best:
            found[name] = second_best[name]
    _expose(found.values(), bin_folder())
    return {name: found[name] for name in wanted if name in found}, {
        name: reasons[name] for name in wanted if name not in found
    }


def bin_folder() -> Path:
    """Give the folder that has one small script for each interpreter that was found: python3.10 ... pypy3.11."""
    return cache_folder("interpreters") / "bin"


def _expose(found: Iterable[Interpreter], folder: Path) -> None:
    """Write a script for each interpreter into one folder; those of interpreters that are gone are removed.

    Not a link: uv writes the folder of the link into the pyvenv.cfg of an environment, as the place beside which the
    library is sought, and an unpacked Python, which was built for another place, does not find it there.
    """
    folder.mkdir(exist_ok=True)
    for one in found:
        script = folder / executable_name(one.name)
        text = f'#!/bin/sh\nexec {shlex.quote(str(one.path))} "$@"\n'
        if not script.is_file() or script.read_bytes() != text.encode():
            new = folder / f".{script.name}.{os.getpid()}"
            new.write_text(text, encoding="utf-8")
            new.chmod(0o755)
            new.replace(script)
    for name in VERSIONS:
        script = folder / executable_name(name)
        with contextlib.suppress(FileNotFoundError):
            words = shlex.split(script.read_text(encoding="utf-8"), comments=True)
            if not os.access(words[1], os.X_OK):
                script.unlink()


if __name__ == "__main__":
    sys.exit(main())
