"""Get the user's own object: from a file or from a module.

    --data FILE          bytes --> JSON? --> JSON lines? --> a file of joblib's? --> a pickle? --> the object
    --import MODULE:NAME import --> attribute --> the object

A file is recognised by what is in it, not by what it is called. Only bytes that are no JSON and
look like a pickle (they begin with its PROTO opcode or end in STOP) or like what `joblib.dump` wrote
are unpickled, because unpickling runs whatever code the file names.

Not for: finding out whether the object can be pickled; ``bench`` does that.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys

__all__ = ["LoadError", "from_file", "from_module", "one_line"]

_COMPRESSED = (b"\x1f\x8b", b"x\x01", b"x\x5e", b"x\x9c", b"x\xda", b"BZh", b"\xfd7zXZ", b"]\x00\x00")
"""How files begin that `joblib.dump` has compressed: by gzip, zlib, bz2, xz, lzma."""

_OF_ARRAYS = b"joblib.numpy_pickle"
"""The module that is named where there is an array in a file of joblib's, which is no pickle then."""


class LoadError(Exception):
    """The user's object is not to be had; the message is one line that says what to do."""


def from_file(path: str) -> object:
    """Load an object from a file of JSON or JSON lines, from a pickle, or from what joblib has written.

    Args:
        path: The file.

    Returns:
        The object; for JSON lines a list of one object per line.

    Raises:
        LoadError: If the file cannot be read, is empty, is neither JSON nor a pickle, or does not
            unpickle.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise LoadError(f"cannot read {path}: {error.strerror or error}; name a JSON or pickle file") from None
    if not content.strip():
        raise LoadError(f"{path} is empty; name a JSON or pickle file")
    try:
        return _from_json(content)
    except RecursionError:
        raise LoadError(f"{path} is nested too deeply to be read as JSON") from None
    except json.JSONDecodeError as error:
        if content.lstrip()[:1] in (b"{", b"["):
            raise LoadError(f"{path} is no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from None
    except ValueError:  # it is no text
        pass
    is_joblibs = _OF_ARRAYS in content or content.startswith(_COMPRESSED)
    if not (is_joblibs or content.startswith(pickle.PROTO) or content.endswith(pickle.STOP)):
        raise LoadError(f"{path} is neither JSON nor a pickle; use --import for an object that code makes")
    _make_importable()
    try:
        return importlib.import_module("joblib").load(path) if is_joblibs else pickle.loads(content)
    except (Exception, SystemExit) as error:  # whatever the code that the pickle names raises
        what = "a file of joblib's" if is_joblibs else "a pickle"
        raise LoadError(f"{path} is not JSON, and as {what} it fails: {one_line(error)}") from None


def _from_json(content: bytes) -> object:
    """Read JSON, or else JSON lines.

    Args:
        content: The bytes of the file.

    Returns:
        The object.

    Raises:
        ValueError: If it is neither; JSONDecodeError, if it is text, with the place where it is no JSON.
    """
    text = content.decode("utf-8-sig")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        found = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                if line.strip():
                    found.append(json.loads(line))
            except json.JSONDecodeError as of_line:
                if not found:  # its first line is no JSON by itself
                    raise error from None
                of_line.lineno = number
                raise of_line from None
        return found


def from_module(reference: str) -> object:
    """Fetch an object from a module.

    Args:
        reference: ``module:name``, where the name may be dotted
            (``package.module:Class.attribute``).

    Returns:
        The object itself; a function is not called.

    Raises:
        LoadError: If the reference has another form, the module does not import or the name is not
            in it.
    """
    module_name, colon, attributes = reference.partition(":")
    names = module_name.split(".") + attributes.split(".")
    if not colon or not all(name.isidentifier() for name in names):
        raise LoadError(f"cannot import {reference!r}: write MODULE:NAME, for example package.module:DATA")
    _make_importable()
    try:
        found: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever the user's module does when it is imported
        raise LoadError(f"cannot import module {module_name}: {one_line(error)}") from None
    for name in attributes.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            raise LoadError(f"cannot import {reference}: {one_line(error)}") from None
    return found


def _make_importable() -> None:
    """Put the current folder first on ``sys.path``, as ``python -m`` does."""
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)


def one_line(error: BaseException) -> str:
    """Put an exception into one line.

    Args:
        error: The exception.

    Returns:
        Its type and its message, without line breaks; of a long message the first 300 characters.
    """
    message = " ".join(str(error).split())
    if len(message) > 300:
        message = message[:300] + " ..."
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
