"""Making Pythons that are missing: from the packages of the machine's own mirror, from its sources, or by uv.

    from_mirror   apt, configured apart ──► packages ── dpkg-deb -x, patchelf ──► roots/VERSION-SUITE/
                  (each executable is pointed at the loader and the libraries beside it)
    from_sources  a free-threaded one: its sources, built here ──► roots/
    from_uv       uv python install ──► uv/

A root is made under another name and renamed when it is complete.  Nothing is installed: neither apt's nor dpkg's state
changes, and no rights are needed.  Signatures are checked.  Each function gives what it has made, and why it could not
make the others, by their names.

Not for: looking for those that are there (`finding`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from finding import PROBE_TIMEOUT, Interpreter, cached, choose, executable_in, probe
from mirror import SOURCES, ToolError, call, find_mirror, own_apt
from steps import make_venv, progress

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

_BUILD_TIMEOUT = 900.0
"""Seconds that one step of building an interpreter may take; all of it takes four minutes on two cores."""

_NEEDED = ("ctypes", "zlib")
"""What the tests need of a Python that is built here, and what is left out where the libraries' headers are missing."""

_UV_TIMEOUT = 180.0
"""Seconds that ``uv python install`` may take for one interpreter."""


def from_mirror(wanted: Sequence[str], cache: Path, given: str | None) -> tuple[dict[str, Interpreter], dict[str, str]]:
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
    return _put(root, final, name, f"the mirror's {suite}")


def _put(root: Path, final: Path, name: str, source: str) -> Interpreter:
    """Put an interpreter that is complete in its place in the cache.

    Raises:
        ToolError: it does not run, or is another version.
    """
    final.parent.mkdir(exist_ok=True)
    if final.exists():  # it does not run any more, else it would have been found
        shutil.rmtree(final)
    root.rename(final)
    one = probe(executable_in(final, name), source)
    if one is None or one.name != name:
        shutil.rmtree(final)
        raise ToolError(f"the one from {source} " + ("does not run here" if one is None else f"is {one.name}"))
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
    executable = executable_in(root, name)
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


def _patchelf(cache: Path) -> list[str]:
    """Give a patchelf command: the machine's, or else the package index's, in a virtual environment in the cache."""
    if shutil.which("patchelf"):
        with contextlib.suppress(ToolError):
            call(["patchelf", "--version"], "asking patchelf", timeout=PROBE_TIMEOUT)
            return ["patchelf"]
    return [str(make_venv(cache / "patchelf", ["patchelf"]) / "bin" / "patchelf")]


def from_sources(
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
    built = Path(f"{staged}{final}")
    command = [str(executable_in(built, name)), "-c", f"import {', '.join(_NEEDED)}"]
    call(command, f"importing {' and '.join(_NEEDED)} there (are libffi-dev and zlib1g-dev installed?)")
    return _put(built, final, name, "the mirror's sources")


def from_uv(wanted: Sequence[str], cache: Path) -> tuple[dict[str, Interpreter], dict[str, str]]:
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
        good, second_best = choose(name, cached(name, cache))
        if one := good or second_best:
            made[name] = one
        else:
            reasons[name] = "what uv installed does not run"
    return made, reasons
