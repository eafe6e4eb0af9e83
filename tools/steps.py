"""What the tools do on the way: the folders of the cache, a lock, a virtual environment, a line of progress.

Not for: running commands (`mirror.call`).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from mirror import ToolError, call


class OneLineParser(argparse.ArgumentParser):
    """Report wrong usage in one line."""

    def error(self, message: str) -> NoReturn:
        """Print the line and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (--help tells more)\n")


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
