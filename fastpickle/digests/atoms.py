"""Atoms where texts are not memoized: what encodes one, by its type, for what is written at once.

    atoms_of(plan)[id(type(x))](x)   the opcodes of a text, an int, a float, a bool, None, or of bytes, if they are not
                                     memoized either; it raises `TooLong` for what would be copied in vain if the rest
                                     could not be written so

Not for: lists of them (`shapes.of_one_type`), nor the loop, which has them inline (`hashing`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pickle import BINBYTES, BINFLOAT, BINUNICODE, NEWFALSE, NEWTRUE, NONE
from types import NoneType
from typing import Any, Final

from ..engine.columns import write_int
from ..hooks import Plan
from ..interrupts import GivenUp
from ..opcodes import SHORT_BINBYTES, SHORT_BINUNICODE, pack_binbytes, pack_binfloat, pack_binunicode
from .shapes import LONG_HEADERS

__all__ = ["BYTES", "Atoms", "TooLong", "atoms_of", "encode_bytes"]

#: By the id of its type, since the hash of a type may be anybody's.
Atoms = dict[int, Callable[[Any], bytes]]
#: A longer text or bytes is not encoded.
_LONGEST: Final = 4096


class TooLong(GivenUp):
    """A text or bytes is too long."""


def atoms_of(plan: Plan) -> Atoms:
    """Return what encodes atoms for the picklers of a plan, which has a `hash_rule`."""
    return _ATOMS[plan.hash_rule.memoizes_bytes][plan.proto]  # type: ignore[union-attr]  # it has one


def _text(headers: tuple[bytes, ...], x: str) -> bytes:
    if len(x) > _LONGEST:
        raise TooLong
    encoded = x.encode()
    n = len(encoded)
    return (headers[n] if n <= 255 else pack_binunicode(BINUNICODE, n)) + encoded


def encode_bytes(x: bytes) -> bytes:
    n = len(x)
    if n > _LONGEST:
        raise TooLong
    return (SHORT_BINBYTES[n] if n <= 255 else pack_binbytes(BINBYTES, n)) + x


def _atoms(proto: int, memoizes_bytes: bool) -> Atoms:
    """Return what encodes atoms at a protocol."""
    encoders: dict[type, Callable[[Any], bytes]] = {
        str: partial(_text, SHORT_BINUNICODE if proto >= 4 else LONG_HEADERS),
        int: write_int,
        float: partial(pack_binfloat, BINFLOAT),
        bool: (NEWFALSE, NEWTRUE).__getitem__,
        NoneType: {None: NONE}.__getitem__,
    }
    found = {id(t): encode for t, encode in encoders.items()}
    if proto >= 3:
        found[BYTES if memoizes_bytes else id(bytes)] = encode_bytes
    return found


#: Stands in the table where bytes are memoized, and have an opcode; no id is that.
BYTES: Final = 0
_ATOMS: Final = [[_atoms(proto, memoizes_bytes) for proto in range(6)] for memoizes_bytes in (False, True)]
