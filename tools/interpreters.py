#!/usr/bin/env python3
"""Find or make every Python that the test matrix runs on: CPython 3.10 to 3.15, free-threaded builds, PyPy 3.11.

    PATH, pyenv's versions, uv's Pythons, this cache ── each is run once ──► Interpreter
        │ nothing usable
        ▼
    the machine's own mirror ── apt, configured apart ──► packages ── dpkg-deb -x, patchelf ──► roots/VERSION-SUITE/
        │ not on the mirror                 (each executable is pointed at the loader and the libraries beside it)
        ├── a free-threaded one: its sources, built here ──► roots/
        ▼
    uv python install ──► uv/           and at last one small script for each in bin/, for PATH

The cache is ``.cache/interpreters/`` beside the project, or ``$FASTPICKLE_CACHE/interpreters/``.  A root is made under
another name and renamed when it is patched, so one that exists is complete; a lock file keeps two runs from making it
at once.  Nothing is installed: neither apt's nor dpkg's state changes, and no rights are needed.  Signatures are
checked.

The Pythons that are unpacked have no working ensurepip: make environments with uv or virtualenv.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mirror import ToolError, call, find_mirror, own_apt

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "pypy3.11", "3.13t", "3.14t")
"""Every interpreter of the matrix, by the name that --only takes; a "t" is for a free-threaded build (PEP 703)."""

MAY_BE_MISSING = frozenset(name for name in VERSIONS if name.endswith("t"))
"""Those without which all is well: no distribution has them, and to build one takes a compiler and the sources."""

SUITES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "debian": {
        "testing": ("3.13", "3.14", "3.15", "pypy3.11"),
        "trixie": ("3.13", "pypy3.11"),
        "bookworm": ("3.11",),
    },
    "ubuntu": {
        "devel": ("3.13", "3.14", "3.15", "pypy3.11"),
        "noble": ("3.12",),
        "jammy": ("3.10", "3.11"),
    },
}
"""Which suite of a mirror may have which version, in the order in which they are asked."""

SOURCES: Mapping[str, str] = {"debian": "testing", "ubuntu": "devel"}
"""The suite of a mirror that has the sources of the newest Pythons."""

_BUILD_TIMEOUT = 900.0
"""Seconds that one step of building an interpreter may take; all of it takes four minutes on two cores."""

_NEEDED = ("ctypes", "zlib")
"""What the tests need of a Python that is built here, and what is left out where the libraries' headers are missing."""

_PROBE_TIMEOUT = 20.0
"""Seconds that an interpreter may take to say what it is."""

_UV_TIMEOUT = 180.0
"""Seconds that ``uv python install`` may take for one interpreter."""

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


class OneLineParser(argparse.ArgumentParser):
    """Report wrong usage in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (--help tells more)\n")


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
    found, second_best = _look(wanted, cache)
    absent = [name for name in wanted if name not in found]
    reasons = dict.fromkeys(absent, "it is not on this machine")
    if absent and fetch:
        with locked(cache / "lock", "another run is making interpreters"):
            for left_over in cache.glob("making-*"):  # by a run that was killed
                shutil.rmtree(left_over, ignore_errors=True)
            for name in absent:  # which may have been made while this run waited
                if again := _choose(name, _cached(name, cache))[0]:
                    found[name] = again
            for make in (
                functools.partial(_from_mirror, given=mirror),
                functools.partial(_from_sources, given=mirror),
                _from_uv,
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


def executable_name(name: str) -> str:
    """Give the file name of an interpreter: "3.14" is python3.14."""
    return name if name.startswith("pypy") else f"python{name}"


def cache_folder(part: str) -> Path:
    """Give a folder of the cache, made if need be, and kept out of version control.

    Args:
        part: the folder's name.

    Returns:
        Its absolute path.

    Raises:
        ToolError: it cannot be written.
    """
    default = Path(__file__).resolve().parent.parent / ".cache"
    folder = Path(os.environ.get("FASTPICKLE_CACHE") or default).resolve() / part
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise ToolError(f"the cache folder {folder} cannot be written: {error.strerror}") from None
    return folder


# Looking


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
            timeout=_PROBE_TIMEOUT,
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
    yield from _cached(name, cache)


def _cached(name: str, cache: Path) -> Iterator[tuple[str, Path]]:
    """Name the executables of an interpreter that this tool has made."""
    for root in sorted((cache / "roots").glob(f"{name}-*")):
        yield f"the mirror's {root.name.removeprefix(name + '-')}", _executable(root, name)
    for folder in newest_first(list((cache / "uv").glob("*"))):
        if (folder / "bin" / executable_name(name)).exists():
            yield "uv, in the cache", folder / "bin" / executable_name(name)


def _choose(name: str, places: Iterator[tuple[str, Path]]) -> tuple[Interpreter | None, Interpreter | None]:
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


def _look(wanted: Sequence[str], cache: Path) -> tuple[dict[str, Interpreter], dict[str, Interpreter]]:
    """Look everywhere for all of them at once; give those that are good, and for the others what would do."""
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda name: _choose(name, candidates(name, cache)), wanted))
    found = {name: good for name, (good, _) in zip(wanted, results, strict=True) if good}
    return found, {name: other for name, (_, other) in zip(wanted, results, strict=True) if other}


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


# Making from packages


def _from_mirror(
    wanted: Sequence[str], cache: Path, given: str | None
) -> tuple[dict[str, Interpreter], dict[str, str]]:
    """Make interpreters from the packages of a mirror; give them, and why the others could not be made."""
    try:
        mirror = find_mirror(given)
    except ToolError as error:
        return {}, dict.fromkeys(wanted, str(error))
    made: dict[str, Interpreter] = {}
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as work:
        for suite, may_have in SUITES[mirror.family].items():
            left = [name for name in wanted if name in may_have and name not in made]
            if not left:
                continue
            progress(f"reading the list of {mirror.family} {suite} for {', '.join(left)}")
            try:
                apt = own_apt(Path(work) / suite, mirror, suite)
                call([*apt, "update"], f"reading the list of {suite}")
            except ToolError as error:
                reasons |= dict.fromkeys(left, str(error))
                continue
            for name in left:
                try:
                    made[name] = _make_root(name, suite, apt, Path(work), cache)
                except ToolError as error:
                    reasons[name] = str(error)
    for name in wanted:
        if not any(name in may_have for may_have in SUITES[mirror.family].values()):
            reasons[name] = f"no {mirror.family} suite has it"
    return made, {name: reason for name, reason in reasons.items() if name not in made}


def _make_root(name: str, suite: str, apt: Sequence[str], work: Path, cache: Path) -> Interpreter:
    """Download an interpreter's packages, unpack them into a folder of their own, and point it at what is in there.

    Raises:
        ToolError: a step failed, or the interpreter does not run or is another version.
    """
    programs = (
        ["pypy3", "pypy3-lib-testsuite"] if name == "pypy3.11" else [f"python{name}", f"libpython{name}-testsuite"]
    )
    packages = work / f"{suite}-{name}"
    (packages / "partial").mkdir(parents=True)
    download = [*apt, "-o", f"Dir::Cache::archives={packages}", "install", "--download-only"]
    progress(f"downloading {name} from {suite}")
    try:
        call([*download, *programs], f"downloading {name} from {suite}")
    except ToolError:
        call([*download, programs[0]], f"downloading {name} from {suite}")  # some suites have no package of the tests
    progress(f"unpacking {name}")
    root = packages / "root"
    for package in sorted(packages.glob("*.deb")):
        call(["dpkg-deb", "--extract", str(package), str(root)], f"unpacking {package.name}")
    final = cache / "roots" / f"{name}-{suite}"
    _point(root, final, name, _patchelf(cache))
    final.parent.mkdir(exist_ok=True)
    if final.exists():  # it does not run any more, else it would have been found
        shutil.rmtree(final)
    root.rename(final)
    one = probe(_executable(final, name), f"the mirror's {suite}")
    if one is None or one.name != name:
        shutil.rmtree(final)
        raise ToolError(f"the one from {suite} does not run here" if one is None else f"{suite} has {one.name} instead")
    return one


def _point(root: Path, final: Path, name: str, patchelf: Sequence[str]) -> None:
    """Point an unpacked interpreter at the loader and the libraries that were unpacked with it.

    Args:
        root: where it is.
        final: where it will be.
        name: the interpreter.
        patchelf: the command.

    Raises:
        ToolError: something is not where it was expected.
    """
    executable = _executable(root, name)
    loader_name = Path(
        call([*patchelf, "--print-interpreter", str(executable)], f"reading {executable.name}")
    ).name.strip()
    # with the triplet that the packages use; an older suite has its libraries in /lib
    folders = [library.parent for top in ("usr/lib", "lib") for library in root.glob(f"{top}/*/libc.so.6")]
    if not folders:
        raise ToolError(f"the packages of {name} have no libc.so.6")
    triplet = folders[0].name
    folders = [folder for folder in (root / "usr/lib" / triplet, root / "lib" / triplet) if folder.is_dir()]
    places = [*folders, root / "usr/lib64", root / "lib64", root / "usr/lib", root / "lib"]
    loaders = [place / loader_name for place in places if (place / loader_name).is_file()]
    if not loaders:
        raise ToolError(f"the packages of {name} have no {loader_name}")
    rpath = ["--force-rpath", "--set-rpath", ":".join(str(final / folder.relative_to(root)) for folder in folders)]
    loader = str(final / loaders[0].relative_to(root))
    call([*patchelf, "--set-interpreter", loader, *rpath, str(executable)], f"patching {executable.name}")
    for library in root.glob("usr/lib/**/libpypy3*-c.so"):
        if not library.is_symlink():
            call([*patchelf, *rpath, str(library)], f"patching {library.name}")
    # PyPy compiles its _testcapi when it is imported, from a file that the packages lack, and its library's tests stop
    # there; they are made for a PyPy without that module as well
    for module in root.glob("usr/lib/pypy3*/_testcapi.py"):
        if not module.with_name("_testcapimodule.c").exists():
            module.unlink()


def _executable(root: Path, name: str) -> Path:
    """Give an unpacked interpreter's executable; a link in the root that is absolute means the root's own files."""
    file = root / "usr/bin" / executable_name(name)
    while file.is_symlink():
        target = os.readlink(file)
        file = Path(os.path.normpath(f"{root}{target}" if target.startswith("/") else file.parent / target))
    return file


def _patchelf(cache: Path) -> list[str]:
    """Give a patchelf command: the machine's, or else the package index's, in a virtual environment in the cache."""
    if shutil.which("patchelf"):
        with contextlib.suppress(ToolError):
            call(["patchelf", "--version"], "asking patchelf", timeout=_PROBE_TIMEOUT)
            return ["patchelf"]
    return [str(make_venv(cache / "patchelf", ["patchelf"]) / "bin" / "patchelf")]


# Making from sources


def _from_sources(
    wanted: Sequence[str], cache: Path, given: str | None
) -> tuple[dict[str, Interpreter], dict[str, str]]:
    """Build free-threaded interpreters from a mirror's sources; give them, and why the others could not be made."""
    made: dict[str, Interpreter] = {}
    reasons: dict[str, str] = {}
    left = [name for name in wanted if name.endswith("t")]
    if not left:
        return made, reasons
    lacking = [command for command in ("gcc", "make") if not shutil.which(command)]
    if lacking:
        return made, dict.fromkeys(left, f"to build it takes {' and '.join(lacking)}")
    with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as work:
        try:
            mirror = find_mirror(given)
            suite = SOURCES[mirror.family]
            progress(f"reading the list of the sources of {mirror.family} {suite} for {', '.join(left)}")
            apt = own_apt(Path(work) / suite, mirror, suite, "deb-src")
            call([*apt, "update"], f"reading the list of the sources of {suite}")
        except ToolError as error:
            return made, dict.fromkeys(left, str(error))
        for name in left:
            try:
                made[name] = _build(name, suite, apt, Path(work) / name, cache)
            except ToolError as error:
                reasons[name] = str(error)
    return made, reasons


def _build(name: str, suite: str, apt: Sequence[str], work: Path, cache: Path) -> Interpreter:
    """Download an interpreter's sources, and build them for its place in the cache.

    Raises:
        ToolError: a step failed, or the interpreter does not run or is another version.
    """
    final = cache / "roots" / f"{name}-built"
    if re.search(r"\s", str(final)):
        raise ToolError(f"it cannot be built for a folder with a space in its name: {final}")
    work.mkdir()
    package = f"python{name.removesuffix('t')}"
    progress(f"downloading the sources of {name} from {suite}")
    call([*apt, "source", "--download-only", "--tar-only", package], f"downloading {package}'s sources", cwd=work)
    for archive in work.glob("*.orig.tar.*"):
        call(["tar", "--extract", "--file", str(archive)], f"unpacking {archive.name}", cwd=work)
    folders = [path for path in work.iterdir() if (path / "configure").is_file()]
    if len(folders) != 1:
        raise ToolError(f"{suite}'s sources of {package} have no configure")
    options = [f"--prefix={final / 'usr'}", "--disable-gil", "--without-ensurepip", "CFLAGS=-O2"]
    progress(f"building {name}, which takes some minutes")
    call(["./configure", "--quiet", *options], f"configuring {name}", cwd=folders[0], timeout=_BUILD_TIMEOUT)
    staged = work / "staged"
    install = ["make", "--silent", f"-j{os.cpu_count() or 1}", "install", f"DESTDIR={staged}"]
    call(install, f"building {name}", cwd=folders[0], timeout=_BUILD_TIMEOUT)
    final.parent.mkdir(exist_ok=True)
    built = Path(f"{staged}{final}")
    command = [str(_executable(built, name)), "-c", f"import {', '.join(_NEEDED)}"]
    call(command, f"importing {' and '.join(_NEEDED)} there (are libffi-dev and zlib1g-dev installed?)")
    if final.exists():  # it does not run any more, else it would have been found
        shutil.rmtree(final)
    built.rename(final)
    one = probe(_executable(final, name), "the mirror's sources")
    if one is None or one.name != name:
        shutil.rmtree(final)
        raise ToolError("what was built does not run here" if one is None else f"{suite} has {one.name} instead")
    return one


# Making with uv


def _from_uv(wanted: Sequence[str], cache: Path) -> tuple[dict[str, Interpreter], dict[str, str]]:
    """Let uv install interpreters into the cache; give them, and why the others could not be had."""
    try:
        uv = "uv" if shutil.which("uv") else str(make_venv(cache / "uv-venv", ["uv"]) / "bin" / "uv")
    except ToolError as error:
        return {}, dict.fromkeys(wanted, str(error))
    made: dict[str, Interpreter] = {}
    reasons: dict[str, str] = {}
    settings = {"UV_PYTHON_INSTALL_BIN": "0", "UV_PYTHON_DOWNLOADS": "manual", "UV_HTTP_RETRIES": "1"}
    for name in wanted:
        progress(f"asking uv for {name}")
        request = name.replace("pypy", "pypy@")
        command = [uv, "python", "install", "--install-dir", str(cache / "uv"), request]
        try:
            call(command, "uv python install", timeout=_UV_TIMEOUT, settings=settings)
        except ToolError as error:
            reasons[name] = str(error)
            continue
        good, second_best = _choose(name, _cached(name, cache))
        if one := good or second_best:
            made[name] = one
        else:
            reasons[name] = "what uv installed does not run"
    return made, reasons


# Steps


def make_venv(folder: Path, requirements: Sequence[str]) -> Path:
    """Make a virtual environment of this Python with some packages, if it does not exist yet.

    Args:
        folder: where; run what is in it as ``bin/python -m NAME``, because it is made under another name.
        requirements: what to install.

    Returns:
        The folder.

    Raises:
        ToolError: it cannot be made.
    """
    if (folder / "bin" / "python").exists():  # a link, which leads nowhere if its Python is gone
        return folder
    progress(f"making an environment with {', '.join(requirements)}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    purpose = f"installing {', '.join(requirements)}"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as name:
        new = Path(name) / "venv"
        python = str(new / "bin" / "python")
        try:
            if not shutil.which("uv"):
                raise ToolError("there is no uv")
            call(["uv", "venv", "--quiet", "--python", sys.executable, str(new)], "uv venv")
            call(["uv", "pip", "install", "--quiet", "--python", python, *requirements], purpose)
        except ToolError:
            shutil.rmtree(new, ignore_errors=True)
            try:
                call([sys.executable, "-c", "import ensurepip"], "importing ensurepip")
            except ToolError:
                hint = "install uv, or Debian's package python3-venv"
                raise ToolError(f"{sys.executable} cannot make virtual environments: {hint}") from None
            call([sys.executable, "-m", "venv", str(new)], "making a virtual environment")
            call([python, "-m", "pip", "install", "--quiet", *requirements], purpose)
        with locked(folder.with_name(folder.name + ".lock"), f"another run is making {folder.name}"):
            if not (folder / "bin" / "python").exists():
                shutil.rmtree(folder, ignore_errors=True)
                new.rename(folder)
    return folder


@contextlib.contextmanager
def locked(file: Path, why: str) -> Iterator[None]:
    """Hold a lock while a block runs; say once why, if that means waiting.

    Args:
        file: the lock file; it is made and stays.
        why: who holds it, for the line that is printed.
    """
    with file.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            progress(f"{why}; waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def progress(line: str) -> None:
    """Tell what is being done, on standard error."""
    print(f"interpreters: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
