"""Get upstream's files without touching the system: from the environment, from the package index, or from apt.

    need(suite, wanted)               the environment has these packages, or else a line says how to get them
    installed_folder(name, version)   the environment has the pinned version: its folder
    index_folder(name, version)       else the wheel, unpacked into the cache by pip (or uv, where there is no pip)
    index_sdist(name, version, ...)   a source distribution, for tests that no wheel contains, unpacked into the cache
    debian_tarball(package, ...)      the orig tarball of a Debian source package, for what no wheel contains
    unpack(tarball, sha256)           a tarball with a known checksum, unpacked into the cache

The cache is ``.cache/compat/`` beside this package, or ``$FASTPICKLE_CACHE``.  Each entry is made under another name
and then renamed, so an entry that exists is complete, also if two runs make it at once.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from compat._suite import MissingInput
from tools.mirror import SOURCES, ToolError, call, find_mirror, own_apt


def cache_folder() -> Path:
    """Give the cache folder, made if need be, and kept out of version control."""
    default = Path(__file__).resolve().parent.parent / ".cache" / "compat"
    folder = Path(os.environ.get("FASTPICKLE_CACHE") or default).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
    except OSError as error:
        raise MissingInput(f"the cache folder {folder} cannot be written: {error.strerror}") from None
    return folder


def installed_folder(name: str, version: str) -> Path | None:
    """Look for a pinned version in the environment.

    Args:
        name: the distribution's name, which is also its package's.
        version: the version that it must have.

    Returns:
        The package's folder; None if the environment has no such version.
    """
    spec = importlib.util.find_spec(name)
    if _version(name) != version or spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent


def need(suite: str, wanted: Mapping[str, str | None]) -> None:
    """Make sure that packages are installed.

    Args:
        suite: the suite that needs them.
        wanted: the distribution's name -> the version that it must have; None for any.

    Raises:
        MissingInput: one or more are missing or of another version; the message has the command that installs them.
    """
    wrong = [
        name if version is None else f"{name}=={version}"
        for name, version in wanted.items()
        if _version(name) is None or version not in (None, _version(name))
    ]
    if wrong:
        raise MissingInput(f"the suite {suite} needs other packages: pip install {' '.join(wrong)}")


def _version(name: str) -> str | None:
    """Give the installed version of a distribution; None if there is none."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def index_folder(name: str, version: str) -> Path:
    """Unpack a pure-Python wheel from the package index into the cache.

    Args:
        name: the distribution's name.
        version: its pinned version.

    Returns:
        The folder to put on ``sys.path``.

    Raises:
        MissingInput: neither pip nor uv could get it.
    """
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
    elif shutil.which("uv"):
        command = ["uv", "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise MissingInput(f"{name} {version} is not installed, and there is no pip or uv to fetch it with")

    def make(folder: Path) -> None:
        _call([*command, "--no-deps", "--target", str(folder), f"{name}=={version}"], f"fetching {name} {version}")

    return _cached(f"{name}-{version}", make)


def index_sdist(name: str, version: str, sha256: str) -> Path:
    """Unpack a source distribution from the package index into the cache.

    It is not installed.  But pip asks a source distribution for its metadata even where it is only to download it, and
    that runs its build: so the checksum goes to pip too, which looks at it before anything of the file is run, and what
    the build needs is taken as wheels.

    Args:
        name: the distribution's name.
        version: its pinned version.
        sha256: its pinned checksum.

    Returns:
        The one folder that it contains.

    Raises:
        MissingInput: there is no pip or uv, the index has no such file, or another one under this name.
    """
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    elif shutil.which("uv"):
        pip = ["uv", "tool", "run", "--quiet", "--python", sys.executable, "pip"]
    else:
        raise MissingInput(
            f"{name} {version}'s tests are in its source distribution: install pip or uv to fetch it with"
        )

    def make(folder: Path) -> None:
        pinned = folder / "requirements.txt"
        pinned.write_text(f"{name}=={version} --hash=sha256:{sha256}\n", encoding="utf-8")
        options = ["--quiet", "--no-deps", "--no-binary", name, "--require-hashes", "--dest", str(folder)]
        _call([*pip, "download", *options, "--requirement", str(pinned)], f"fetching {name} {version}'s source")

    files = list(_cached(f"sdist-{name}-{version}", make).glob("*.tar.gz"))
    if len(files) != 1:
        raise MissingInput(f"the source distribution of {name} {version} is {len(files)} tarballs, not one")
    return unpack(files[0], sha256)


def debian_tarball(package: str, upstream_version: str) -> Path:
    """Download the orig tarball of a Debian source package.

    Args:
        package: the source package's name.
        upstream_version: the version that its tarball must have.

    Returns:
        The tarball, in the cache.

    Raises:
        MissingInput: there is no apt, it has no mirror of Debian's or Ubuntu's, or that has another version by now.
    """
    hint = f"get {package}'s {upstream_version} source tarball and name it with --source"
    tarball = f"{package}_{upstream_version}.orig.tar.gz"

    def make(folder: Path) -> None:
        try:
            mirror = find_mirror(os.environ.get("FASTPICKLE_MIRROR"))
            apt = own_apt(folder / "apt", mirror, SOURCES[mirror.family], "deb-src")
            call([*apt, "update"], "reading the mirror's list of source packages")
            call([*apt, "source", "--download-only", "--tar-only", package], f"fetching {package}'s source", cwd=folder)
        except ToolError as error:
            raise MissingInput(f"{error}; {hint}") from None
        if not (folder / tarball).exists():
            raise MissingInput(f"the mirror has no {tarball} any more; {hint}")
        shutil.rmtree(folder / "apt")

    return _cached(f"debian-{package}-{upstream_version}", make) / tarball


def unpack(tarball: Path, sha256: str) -> Path:
    """Unpack a tarball into the cache, if it is the one that is expected.

    Args:
        tarball: the file.
        sha256: its pinned checksum.

    Returns:
        The one folder that the tarball contains.

    Raises:
        MissingInput: it cannot be read, is another file, or does not contain one folder.
    """
    try:
        found = hashlib.sha256(tarball.read_bytes()).hexdigest()
    except OSError as error:
        raise MissingInput(f"{tarball} cannot be read: {error.strerror}") from None
    if found != sha256:
        raise MissingInput(f"{tarball} has SHA-256 {found}, not the pinned {sha256}")

    def make(folder: Path) -> None:
        with tarfile.open(tarball) as archive:
            archive.extractall(folder, filter="data")

    folders = [entry for entry in _cached(f"unpacked-{sha256[:16]}", make).iterdir() if entry.is_dir()]
    if len(folders) != 1:
        raise MissingInput(f"{tarball} contains {len(folders)} folders, not one")
    return folders[0]


def _cached(entry: str, make: Callable[[Path], None]) -> Path:
    """Give a cache entry; call make(folder) to fill it if it does not exist yet."""
    final = cache_folder() / entry
    if final.exists():
        return final
    with tempfile.TemporaryDirectory(dir=cache_folder(), prefix="making-") as name:
        folder = Path(name) / "entry"
        folder.mkdir()
        make(folder)
        try:
            folder.rename(final)
        except OSError:
            if not final.exists():  # else another run has made it in the meantime
                raise
    return final


def _call(command: Sequence[str], purpose: str) -> str:
    """Run a command and give what it printed.

    Raises:
        MissingInput: it failed; the message has the line in which it says why.
    """
    try:
        return call(command, purpose)
    except ToolError as error:
        raise MissingInput(str(error)) from None
