"""Which Pythons are there: on PATH, in pyenv's and uv's folders, and in the cache; each is run once.

    candidates(name) ── places ──► choose() ── probe() ──► the first good Interpreter, and the first that would do

Not for: making one that is missing (`making`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "pypy3.11", "3.13t", "3.14t")
"""Every interpreter of the matrix, by the name that --only takes; a "t" is for a free-threaded build (PEP 703)."""

MAY_BE_MISSING = frozenset(name for name in VERSIONS if name.endswith("t"))
"""Those without which all is well: no distribution has them, and to build one takes a compiler and the sources."""

PROBE_TIMEOUT = 20.0
"""Seconds that an interpreter may take to say what it is."""

_PROBE = """\
import json, sys
from importlib.util import find_spec
try:
    tests = find_spec("test.pickletester") is not None
except ImportError:
    tests = False
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:3]),
    "level": sys.version_info[3],
    "flags": getattr(sys, "abiflags", ""),
    "venv": sys.prefix != sys.base_prefix,
    "tests": tests,
    "executable": sys.executable,
}))
"""


@dataclass(frozen=True)
class Interpreter:
    """A Python that runs.

    Attributes:
        name: what it is in the matrix: "3.14", "3.14t", "pypy3.11".
        release: its own version in full: "3.14.8".
        final: whether it is a final release.
        tests: whether it has the standard library's own tests, which are a package of their own in Debian.
        source: where it was found.
        path: its executable.
    """

    name: str
    release: str
    final: bool
    tests: bool
    source: str
    path: Path

    @property
    def good(self) -> bool:
        """Tell whether nothing better needs to be sought."""
        return self.final and (self.tests or self.name.startswith("pypy") or self.name in MAY_BE_MISSING)


def executable_name(name: str) -> str:
    """Give the file name of an interpreter: "3.14" is python3.14."""
    return name if name.startswith("pypy") else f"python{name}"


def probe(path: Path, source: str) -> Interpreter | None:
    """Run an executable and learn what it is.

    Args:
        path: the executable.
        source: where it was found.

    Returns:
        The interpreter; its path is what it says itself, since a shim chooses anew each time.  None if it does not run
        (a pyenv shim without a selected version), belongs to a virtual environment, or is a debug build.
    """
    try:
        done = subprocess.run(
            [path, "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=PROBE_TIMEOUT,
            check=True,
        )
        said = json.loads(done.stdout.strip().splitlines()[-1])
        major, minor, micro = said["version"]
        prefix = {"cpython": "", "pypy": "pypy"}[said["implementation"]]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None
    if said["venv"] or said["flags"] not in ("", "t"):
        return None
    return Interpreter(
        name=f"{prefix}{major}.{minor}{said['flags']}",
        release=f"{major}.{minor}.{micro}" + ("" if said["level"] == "final" else f" {said['level']}"),
        final=said["level"] == "final",
        tests=bool(said["tests"]),
        source=source,
        path=Path(said["executable"] or path),
    )


def newest_first(folders: Sequence[Path]) -> list[Path]:
    """Sort the folders of installed versions by the version in their names, newest first."""
    return sorted(folders, key=lambda folder: [int(digits) for digits in re.findall(r"\d+", folder.name)], reverse=True)


def candidates(name: str, cache: Path) -> Iterator[tuple[str, Path]]:
    """Name the executables that may be an interpreter, best place first.

    Args:
        name: the interpreter.
        cache: this tool's cache folder.

    Yields:
        Where it is, and the file.
    """
    own = cache / "bin"
    file_names = [executable_name(name)] + (["pypy3"] if name.startswith("pypy") else [])
    for entry in dict.fromkeys(os.environ.get("PATH", "").split(os.pathsep)):
        for file_name in file_names:
            file = Path(entry).absolute() / file_name
            if entry and file.parent != own and os.access(file, os.X_OK):
                yield "PATH", file
    pyenv = os.environ.get("PYENV_ROOT") or "~/.pyenv"
    uv = os.environ.get("UV_PYTHON_INSTALL_DIR") or (os.environ.get("XDG_DATA_HOME") or "~/.local/share") + "/uv/python"
    for source, place in (("pyenv", f"{pyenv}/versions"), ("uv", uv)):  # not by asking them: that takes longer
        for folder in newest_first(list(Path(os.path.expanduser(place)).glob("*"))):
            for file_name in file_names:
                if os.access(folder / "bin" / file_name, os.X_OK):
                    yield source, folder / "bin" / file_name
    yield from cached(name, cache)


def cached(name: str, cache: Path) -> Iterator[tuple[str, Path]]:
    """Name the executables of an interpreter that this tool has made."""
    for root in sorted((cache / "roots").glob(f"{name}-*")):
        yield f"the mirror's {root.name.removeprefix(name + '-')}", executable_in(root, name)
    for folder in newest_first(list((cache / "uv").glob("*"))):
        if (folder / "bin" / executable_name(name)).exists():
            yield "uv, in the cache", folder / "bin" / executable_name(name)


def choose(name: str, places: Iterator[tuple[str, Path]]) -> tuple[Interpreter | None, Interpreter | None]:
    """Give the first good interpreter of that name, and the first one that would do."""
    second_best = None
    for source, file in places:
        one = probe(file, source)
        if one is None or one.name != name:
            continue
        if one.good:
            return one, second_best
        second_best = second_best or one
    return None, second_best


def look(wanted: Sequence[str], cache: Path) -> tuple[dict[str, Interpreter], dict[str, Interpreter]]:
    """Look everywhere for all of them at once; give those that are good, and for the others what would do."""
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: choose(name, candidates(name, cache)), wanted))
    found = {name: good for name, (good, _) in zip(wanted, results, strict=True) if good}
    return found, {name: other for name, (_, other) in zip(wanted, results, strict=True) if other}


def executable_in(root: Path, name: str) -> Path:
    """Give an unpacked interpreter's executable; a link in the root that is absolute means the root's own files."""
    file = root / "usr/bin" / executable_name(name)
    while file.is_symlink():
        target = os.readlink(file)
        file = Path(os.path.normpath(f"{root}{target}" if target.startswith("/") else file.parent / target))
    return file
